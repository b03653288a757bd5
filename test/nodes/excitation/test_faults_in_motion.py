"""Every fault of docs/faults.md that comes in motion, one at a time, under a given time: what the robot does.

The robot is observed from outside, and the invariants of the state machine hold throughout; see World.
"""

import pytest
from support.excitation.combined_events import ALL_EVENTS
from support.excitation.world import EVENTS, World

from inertid_ros.nodes.excitation.goal import Ending
from inertid_ros.nodes.excitation.state_machine import State

STOPS = {
    "disarm": (State.INACTIVE, "deactivated"),
    "shut down": (State.FINALIZED, "asked to end"),
    "cancel": (State.ARMED, "canceled; the robot is at rest"),
    "stop service": (State.FAULT, "stopped on request"),
    "other description": (State.FAULT, "the robot description changed"),
    "lease not renewed": (State.FAULT, "the lease was not renewed"),
    "states stop": (State.FAULT, "no joint state"),
    "states not finite": (State.FAULT, "position is not finite"),
    "states stuck": (State.FAULT, "its state is stuck"),
    "states late": (State.FAULT, "stamp is too old"),
    "states from the future": (State.FAULT, "stamp is in the future"),
    "states not stamped": (State.FAULT, "stamp is not set"),
    "states too rare": (State.FAULT, "below monitor.min_rate_hz"),
    "states drift": (State.FAULT, ""),
    "effort over its limit": (State.FAULT, "needs more than its limit"),
    "controller gone": (State.FAULT, "gone"),
    "controller ignores commands": (State.FAULT, "check for a collision"),  # behind its command, or too far from it
    "another commander": (State.FAULT, "another"),
    "scaling reported": (State.FAULT, "speed scaling is 70 %"),
    "scaling not reported": (State.FAULT, "falls behind its command"),
    "robot's clock steps": (State.FAULT, "stamp is in the future"),
    "partition": (State.ARMED, "waited 1 times at rest"),
    "node pauses": (State.ARMED, "waited 1 times at rest"),
}
HARMLESS = (
    "arm", "clean up", "goal", "recorder stale", "one state not finite", "a third of the states lost",
    "node's clock steps", "a tenth of a processor",
)  # fmt: skip


def moving() -> World:
    world = World()
    world.motion()
    world.run(0.7)
    assert world.machine.state is State.MOVING
    return world


@pytest.mark.parametrize("event", STOPS)
def test_stops(event: str) -> None:
    world = moving()
    EVENTS[event](world, 0.7)
    world.run(0.1)
    world.end()
    state, words = STOPS[event]
    assert world.machine.state is state and words in world.machine.outcome.message
    assert not world.violations, world.violations[0]


@pytest.mark.parametrize("event", HARMLESS)
def test_harmless(event: str) -> None:
    world = moving()
    EVENTS[event](world, 0.7)
    world.run(0.4)
    assert world.machine.state is State.MOVING
    world.disarm()
    world.end()
    assert not world.violations, world.violations[0]


@pytest.mark.parametrize(
    "event, words",
    [
        ("controller gives up", "the controller aborted the motion"),
        ("controller deactivated", "the controller is inactive; activate it"),
        ("emergency stop", "check for a collision"),  # too far from its command, or behind it
    ],
)
def test_a_robot_that_was_stopped_by_its_controller_stays_there(event: str, words: str) -> None:
    """What is sent to a robot that does not follow would be a jump, or press it against what stopped it."""
    world = moving()
    ALL_EVENTS[event](world, 0.7)
    held = world.controller.state(world.robot.now)[0]
    world.run(0.1)
    world.end()
    message = world.machine.outcome.message
    assert world.machine.state is State.FAULT and words in message
    assert ("deactivate the controller" in message) == (event == "emergency stop")
    assert not world.violations, world.violations[0]
    assert abs(world.controller.state(world.robot.now)[0] - held).max() < 1e-3


def test_a_step_of_both_clocks_is_followed() -> None:
    world = moving()
    EVENTS["both clocks step"](world, 0.7)
    world.run(0.4)
    assert world.machine.state is State.MOVING
    world.disarm()
    world.end()
    assert not world.violations, world.violations[0]


def test_a_killed_node_leaves_the_robot_at_rest_and_begins_unarmed() -> None:
    world = moving()
    world.kill()
    world.goal()
    world.run(0.6)
    assert world.machine.outcome.ending is Ending.REFUSED and not world.controller.moving(world.robot.now)
    world.end()
    assert not world.violations, world.violations[0]


@pytest.mark.parametrize("seconds", [0.25, 0.4])
def test_a_network_that_is_cut_and_heals_while_the_robot_brakes(seconds: float) -> None:
    """It rests and goes on: a horizon that were sent while it brakes would make it jump."""
    world = moving()
    world.partition(seconds)
    rested = False
    for _ in range(200):
        world.run(0.005)
        rested |= world.machine.state is State.WAITING and not world.controller.moving(world.robot.now)
    assert rested
    world.end()
    assert world.machine.state is State.ARMED
    assert not world.violations, world.violations[0]


def test_a_step_of_both_clocks_while_states_are_garbage_is_followed() -> None:
    world = moving()
    EVENTS["states not finite"](world, 0.0)
    world.run(0.02)
    world.step_clock(2.0)
    world.run(1.0)
    assert world.machine.state is State.WAITING and not world.controller.moving(world.robot.now)
    world.end()
    assert not world.violations, world.violations[0]


@pytest.mark.parametrize("begin", ["unconfigured", "inactive", "recorder stale", "states stop", "another commander"])
def test_nothing_moves_where_a_goal_comes_too_early(begin: str) -> None:
    world = World()
    if begin != "unconfigured":
        world.arm()
    if begin == "inactive":
        world.disarm()
    elif begin in EVENTS:
        EVENTS[begin](world, 0.0)
        world.run(0.3)
    world.goal()
    world.run(11.0)
    assert world.machine.outcome.ending is Ending.REFUSED
    assert not world.violations, world.violations[0]
