"""The excitation node's state machine: its transitions, and that no sequence of events breaks what must always hold.

The same events and invariants in a thousand longer sequences: benchmarks/fault_sequences.py.
"""

import re
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.excitation.world import EVENTS, World
from support.paths import ROOT

from inertid_ros.config.nodes import MotionOptions
from inertid_ros.nodes.excitation.goal import Ending
from inertid_ros.nodes.excitation.state_machine import TRANSITIONS, State

MOVED = (State.APPROACHING, State.MOVING, State.STOPPING)


class Sequences(RuleBasedStateMachine):
    """Any events in any order, with any time between them."""

    @initialize()
    def begin_to_move(self) -> None:
        self.world = World()
        self.world.motion()

    @rule(name=st.sampled_from(list(EVENTS)), amount=st.floats(0, 1))
    def event(self, name: str, amount: float) -> None:
        EVENTS[name](self.world, amount)

    @rule(seconds=st.sampled_from([0.005, 0.02, 0.1, 0.5, 1.5]))
    def run(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule()
    def move(self) -> None:
        self.world.motion()

    @invariant()
    def nothing_is_broken(self) -> None:
        assert not hasattr(self, "world") or not self.world.violations, self.world.violations[0]

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.end()
            self.nothing_is_broken()


TestSequences = Sequences.TestCase
TestSequences.settings = settings(
    max_examples=5, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
)


def begun(fault: str = "") -> World:
    """A robot that moves for a second already, and what happens then."""
    world = World()
    world.motion()
    world.run(1.0)
    assert world.machine.state is State.MOVING
    if fault:
        EVENTS[fault](world, 0.7)
    return world


def test_a_motion_passes_through_all_states() -> None:
    world, seen = World(), []
    seen.append(world.machine.state)
    world.arm()
    seen.append(world.machine.state)
    world.goal()
    for _ in range(1200):
        if world.machine.state is not seen[-1]:
            seen.append(world.machine.state)
        world.run(0.005)
    assert seen == [
        State.UNCONFIGURED, State.ARMED, State.PLANNING, State.APPROACHING, State.MOVING, State.ARMED
    ]  # fmt: skip
    assert world.machine.outcome.ending is Ending.SUCCEEDED


@pytest.mark.parametrize(
    ("fault", "end"),
    [("cancel", State.ARMED), ("disarm", State.INACTIVE), ("shut down", State.FINALIZED)]
    + [(name, State.FAULT) for name in ("states stop", "lease not renewed", "stop service", "another commander")],
)
def test_where_a_stop_ends(fault: str, end: State) -> None:
    world = begun(fault)
    world.run(0.6)
    world.end()
    assert world.machine.state is end and not world.violations


def test_only_disarming_and_arming_ends_a_fault() -> None:
    world = begun("stop service")
    world.run(1.0)
    world.goal()
    assert world.machine.outcome.ending is Ending.REFUSED
    assert world.machine.outcome.message.startswith("stopped on request; deactivate")
    assert world.machine.arm() and world.machine.state is State.FAULT
    world.disarm()
    world.arm()
    assert world.machine.state is State.ARMED


def test_while_it_brakes_it_cannot_be_armed_or_cleaned_up() -> None:
    world = begun("disarm")
    assert "still coming to rest" in world.machine.arm()
    assert "still coming to rest" in world.machine.clean_up()
    assert world.machine.state is State.STOPPING


def test_a_problem_of_the_configuration_keeps_it_unconfigured() -> None:
    machine = World().machine
    machine.configure("no robot description")
    assert machine.state is State.UNCONFIGURED and machine.message == "no robot description"
    assert machine.begin(SimpleNamespace(), MotionOptions())
    assert machine.outcome.message == "excitation is not armed (no robot description) (the robot did not move)"


def test_after_the_end_nothing_begins_any_more() -> None:
    """A goal that comes while the process waits to end."""
    world = World()
    world.arm()
    world.goal()
    world.shut_down()
    world.goal()
    world.run(1.0)
    assert world.machine.state is State.FINALIZED and world.machine.outcome.ending is Ending.REFUSED
    assert world.machine.arm() and not world.violations


def test_a_change_that_is_not_in_the_table_is_an_error() -> None:
    machine = World().machine
    with pytest.raises(RuntimeError, match="transition from unconfigured to armed is not allowed"):
        machine._rest_in(State.ARMED, "")


def test_the_documentation_shows_the_table() -> None:
    page = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    shown = {
        State(state): {State(name) for name in re.findall(r"`(\w+)`", following)}
        for state, following in re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", page, re.M)
    }
    assert shown == {state: set(following) for state, following in TRANSITIONS.items()}
    assert all(State.FINALIZED in TRANSITIONS[state] for state in State if state not in (*MOVED, State.FINALIZED))
