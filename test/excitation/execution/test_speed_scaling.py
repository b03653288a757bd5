"""A controller whose speed is scaled in motion: the robot is observed from outside, at every cycle."""

from collections.abc import Iterator
from itertools import repeat

import numpy as np
import pytest
from support.scaled_motion import (
    BEGIN,
    CYCLE_S,
    LIMITS,
    Drives,
    Observed,
    Scaling,
    Sensors,
    late_stamps,
    move,
    ramps,
    table,
)

TABLE = table(1)


def run(
    scaling: Scaling,
    told_every: float = 0.0,
    states_every: float = CYCLE_S,
    noise: float = 1e-6,
    late: Iterator[float] | None = None,
    **drives: float,
) -> Observed:
    """A motion under a scaling, see :func:`move`."""
    sensors = Sensors(states_every, noise, late=late or repeat(0.0))
    return move(TABLE, scaling, Drives(**drives), sensors, told_every)


@pytest.mark.parametrize("told_every", [0.0, 0.01], ids=["found", "told"])
@pytest.mark.parametrize(("states_every", "lag"), [(0.002, 0.0), (0.008, 0.02)])
def test_a_slider_that_is_moved_ends_the_motion_without_a_jump(told_every, states_every, lag):
    """From full speed to half, to nothing and back."""
    slider = ramps((3.0, 1.0), (3.2, 0.5), (3.8, 0.5), (4.0, 0.0), (4.6, 0.0), (4.8, 1.0))
    observed = run(slider, told_every, states_every, lag=lag)
    assert "speed scaling" in observed.node.fault
    observed.check()
    assert max(observed.controller.sent) - BEGIN < 3.0 + 0.1


@pytest.mark.parametrize(("factor", "at"), [(0.0, 3.02), (0.5, 3.0), (0.5, 3.05), (0.97, 3.044), (1.2, 3.02)])
def test_a_scaling_that_nobody_tells_is_found_before_the_next_horizon(factor, at):
    """Horizons are sent at 3.001 s and 3.051 s."""
    observed = run(lambda time: 1.0 if time < at else factor)
    assert "of the commanded speed" in observed.node.fault
    observed.check(at)


def test_a_change_shortly_before_a_horizon_is_found_by_two_states():
    """A driver at 125 Hz shows no more of it until then."""
    observed = run(lambda time: 1.0 if time < 3.018 else 0.5, states_every=0.008, noise=1e-4)
    assert "of the commanded speed" in observed.node.fault
    observed.check(3.018)


@pytest.mark.parametrize("told_every", [0.0, 0.01], ids=["found", "told"])
def test_a_stopped_controller_holds_no_motion_once_the_goal_has_ended(told_every):
    """With the scaling known, what the controller still holds is replaced; otherwise the fault warns of it."""
    observed = run(lambda time: 1.0 if time < 3.0 else 0.0 if time < 4.5 else 1.0, told_every)
    assert observed.ended < 4.5
    moved = observed.time[1:][observed.speed.max(axis=1) > 1e-4]
    if told_every:
        assert moved[-1] < 4.0
    else:
        assert "may go on; deactivate the controller" in observed.node.fault and moved[-1] > 4.5
    observed.check(3.0, 4.5)


@pytest.mark.parametrize(
    ("states_every", "lag", "noise"), [(0.002, 0.02, 1e-4), (0.008, 0.01, 3e-4), (0.008, 0.05, 3e-4), (0.01, 0.1, 3e-4)]
)
def test_drives_that_lag_and_sensors_that_err_are_no_scaling(states_every, lag, noise):
    observed = run(lambda time: 1.0, states_every=states_every, lag=lag, noise=noise)
    assert not observed.node.fault
    assert np.diff(observed.controller.sent).max() < 0.08


@pytest.mark.parametrize("states_every", [0.002, 0.008])
def test_states_that_are_stamped_late_are_no_scaling(states_every):
    observed = run(lambda time: 1.0, states_every=states_every, lag=0.005, late=late_stamps(np.random.default_rng(1)))
    assert not observed.node.fault


@pytest.mark.parametrize("factor", [0.5, 0.97])
def test_a_scaling_is_found_among_states_that_are_stamped_late(factor):
    observed = run(lambda time: 1.0 if time < 3.0 else factor, late=late_stamps(np.random.default_rng(1)))
    assert "of the commanded speed" in observed.node.fault
    assert (observed.speed <= LIMITS.velocity).all()
