"""Events that are several of :data:`support.excitation.world.EVENTS` in an order; random sequences make their own."""

from collections.abc import Callable, Mapping

from support.excitation.world import EVENTS, World


def garbage_and_clocks(world: World, _amount: float) -> None:
    """Both clocks step while states are garbage."""
    EVENTS["states not finite"](world, 0.0)
    world.run(0.02)
    world.step_clock(2.0)


def arming_while_it_brakes(world: World, _amount: float) -> None:
    """Deactivated, then at once asked to become active again, and to be cleaned up."""
    world.disarm()
    world.arm()
    world.clean_up()


def stopped_controller(world: World, _amount: float) -> None:
    """The controller is stopped by its speed scaling, and goes on when the motion has ended."""
    world.scaling(0.0, told=True)
    world.run(1.2)
    world.scaling(1.0, told=True)


ALL_EVENTS: Mapping[str, Callable[[World, float], None]] = {
    **EVENTS,
    "garbage and a step of both clocks": garbage_and_clocks,
    "arming while it brakes": arming_while_it_brakes,
    "scaling of zero, then one": stopped_controller,
}
"""Single and combined events, by name."""
