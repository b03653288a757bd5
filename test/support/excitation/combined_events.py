"""Events that are several of :data:`support.excitation.world.EVENTS` in an order; random sequences make their own."""

from collections.abc import Callable, Mapping

from support.excitation.world import EVENTS, TICK_S, World


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


def controller_dies(world: World, _amount: float) -> None:
    """A goal of the action stays without an answer, which is seen after a quarter of a second."""
    world.deaf = True
    world.run(0.25)
    world.robot.disturber = "the controller has not answered"


def goals_rejected(world: World, _amount: float) -> None:
    """The controller keeps the last goal, and says so of the next within 20 ms."""
    world.deaf = True
    world.run(0.02)
    world.robot.disturber = "the controller rejects goals"


def controller_gives_up(world: World, _amount: float) -> None:
    """A tolerance is exceeded: the controller holds where it is, takes further goals, and says so within 20 ms."""
    world.controller.give_up(world.robot.now)
    world.halt_untold = True
    world.run(0.02)
    world.halt_untold, world.robot.halted = False, "the controller aborted the motion"


def controller_deactivated(world: World, _amount: float) -> None:
    """The controller holds where it is and takes no goal; the controller manager, asked twice a second, tells so."""
    world.controller.give_up(world.robot.now)
    world.deaf = True
    world.run(0.5)
    world.robot.halted = "the controller is inactive; activate it"


def emergency_stop(world: World, _amount: float) -> None:
    """The drives stop at once; released after two seconds, the controller takes goals again. Nobody tells."""
    world.controller.give_up(world.robot.now)
    world.deaf = True
    world.run(2.0)
    world.deaf = False


def client_leaves(world: World, _amount: float) -> None:
    """The client of a goal cancels it, and disarms."""
    EVENTS["cancel"](world, 0.0)
    world.run(0.01)
    world.disarm()


def flood_of_states(world: World, _amount: float) -> None:
    """Another node publishes ten states without stamps for each of the robot's; the graph names it."""
    world.robot.disturber = "several nodes publish joint_states"
    for _ in range(20):
        world.foreign_states(10)
        world.run(TICK_S)


def nothing(_world: World, _amount: float) -> None:
    """The state machine never sees what happens, and the motion goes on."""


ALL_EVENTS: Mapping[str, Callable[[World, float], None]] = {
    **EVENTS,
    "garbage and a step of both clocks": garbage_and_clocks,
    "arming while it brakes": arming_while_it_brakes,
    "scaling of zero, then one": stopped_controller,
    "controller dies": controller_dies,
    "goals rejected": goals_rejected,
    "controller gives up": controller_gives_up,
    "controller deactivated": controller_deactivated,
    "emergency stop": emergency_stop,
    "client leaves": client_leaves,
    "flood of states": flood_of_states,
    "nothing": nothing,
}
"""Single and combined events, by name."""

STREAM_PAUSES = "the sender pauses"
"""An event of positions that are streamed; see :mod:`support.excitation.streamed_motion`."""
