"""A controller whose speed is scaled in motion: the robot is observed from outside, at every cycle."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat

import numpy as np
import pytest
from support.scaled_motion import (
    BEGIN,
    BUSY,
    CYCLE_S,
    LIMITS,
    Drives,
    Observed,
    Scaling,
    Sensors,
    late_stamps,
    move,
    ramps,
    random_drives,
    swift,
    table,
)

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.excitation.execution.horizons import HorizonTable

TABLE, SHORT = swift(), table(1, duration_s=5.0)
LOST_S = 2e-3  # of the plan that a controller may lose between two horizons before its reference shows it


def run(
    scaling: Scaling,
    told_every: float = 0.0,
    states_every: float = CYCLE_S,
    noise: float = 1e-6,
    late: Iterator[float] | None = None,
    controller_state: bool = False,
    motion: HorizonTable = TABLE,
    **drives: float,
) -> Observed:
    """A motion under a scaling, see :func:`move`."""
    sensors = Sensors(states_every, noise, late=late or repeat(0.0))
    return move(motion, scaling, Drives(**drives), sensors, told_every, controller_state=controller_state)


def jump(observed: Observed) -> float:
    """Largest step of the controller's reference in a cycle, beyond the velocity limit [rad]."""
    return float((observed.speed - LIMITS.velocity).max()) * observed.cycle


@pytest.mark.parametrize("told_every", [0.0, 0.01], ids=["found", "told"])
@pytest.mark.parametrize(("states_every", "lag"), [(0.002, 0.0), (0.008, 0.02)])
def test_a_slider_that_is_moved_ends_the_motion_without_a_jump(told_every, states_every, lag):
    """From full speed to half, to nothing and back."""
    slider = ramps((3.0, 1.0), (3.2, 0.5), (3.8, 0.5), (4.0, 0.0), (4.6, 0.0), (4.8, 1.0))
    observed = run(slider, told_every, states_every, lag=lag, controller_state=not told_every)
    sent = np.array(observed.controller.sent) - BEGIN
    if told_every:
        assert "speed scaling" in observed.node.fault and sent[-1] < 3.1
        observed.check()
    else:  # as after a message that came too late, the robot goes on once it rests where it should
        assert observed.node.fault or observed.node.interruptions
    assert jump(observed) < LOST_S * LIMITS.velocity.max()


@pytest.mark.parametrize(
    ("factor", "at", "lag"), [(0.0, 3.02, 0.04), (0.5, 3.05, 0.0), (0.9, 3.02, 0.04), (1.2, 3.02, 0.0)]
)
def test_the_controllers_reference_shows_a_scaling_before_the_next_horizon(factor, at, lag):
    observed = run(lambda time: 1.0 if time < at else factor, controller_state=True, lag=lag)
    assert "falls behind its command" in observed.node.fault
    assert jump(observed) < LOST_S * LIMITS.velocity.max()


@pytest.mark.parametrize(
    ("factor", "at", "lag"), [(0.0, 3.02, 0.03), (0.5, 3.0, 0.01), (0.5, -1.0, 0.03), (0.9, -1.0, 0.0)]
)
def test_joint_states_alone_show_a_scaling_before_a_large_jump(factor, at, lag):
    """Before the robot is farther from its command than any robot may be."""
    observed = run(lambda time: 1.0 if time < at else factor, lag=lag, noise=1e-4)
    assert "falls behind its command" in observed.node.fault
    assert jump(observed) < MonitorOptions().tracking_tolerance


@pytest.mark.parametrize("told_every", [0.0, 0.01], ids=["found", "told"])
def test_a_stopped_controller_holds_no_motion_once_the_goal_has_ended(told_every):
    """With the scaling known, what the controller still holds is replaced; otherwise the fault warns of it."""
    stopped = lambda time: 1.0 if time < 3.0 else 0.0 if time < 7.5 else 1.0  # noqa: E731
    observed = run(stopped, told_every, controller_state=not told_every)
    assert observed.ended < 7.5
    moved = observed.time[1:][observed.speed.max(axis=1) > 1e-4]
    if told_every:
        assert moved[-1] < 4.0
    else:
        assert "may go on; deactivate the controller" in observed.node.fault and moved[-1] > 7.5
    if told_every:
        observed.check(3.0)


@pytest.mark.parametrize(
    ("states_every", "lag", "noise"), [(0.002, 0.02, 1e-4), (0.008, 0.01, 3e-4), (0.008, 0.05, 3e-4), (0.01, 0.1, 3e-4)]
)
def test_drives_that_lag_and_sensors_that_err_are_no_scaling(states_every, lag, noise):
    observed = run(lambda time: 1.0, states_every=states_every, lag=lag, noise=noise, motion=SHORT)
    assert not observed.node.fault
    assert np.diff(observed.controller.sent).max() < 0.08


@pytest.mark.parametrize("states_every", [0.002, 0.008])
def test_states_that_are_stamped_late_are_no_scaling(states_every):
    late = late_stamps(np.random.default_rng(1))
    observed = run(lambda time: 1.0, states_every=states_every, lag=0.005, late=late, motion=SHORT)
    assert not observed.node.fault


def test_a_scaling_is_found_among_states_that_are_stamped_late():
    observed = run(lambda time: 1.0 if time < 3.0 else 0.5, late=late_stamps(np.random.default_rng(1)))
    assert "falls behind its command" in observed.node.fault
    assert jump(observed) < MonitorOptions().tracking_tolerance


@pytest.mark.parametrize(("seed", "controller_state"), [(0, False), (1, True), (2, False), (3, True)])
def test_an_ordinary_robot_on_a_busy_machine_ends_its_motion(seed, controller_state):
    """Where its states have gaps, it waits at rest and goes on."""
    drives, sensors = random_drives(np.random.default_rng(seed), 2)
    busy = replace(sensors, channel=BUSY)
    observed = move(SHORT, lambda time: 1.0, drives, busy, seed=seed, controller_state=controller_state)
    assert not observed.node.fault and np.isfinite(observed.ended)
    assert (observed.speed <= LIMITS.velocity).all() and (observed.joint_speed <= LIMITS.velocity).all()


@pytest.mark.parametrize("begin", [0.5, 1.4, 2.3])
@pytest.mark.parametrize(("controller_state", "resolution"), [(True, 1e-3), (False, 0.0)])
def test_after_a_cut_connection_the_robot_goes_on_from_where_it_rests(begin, controller_state, resolution):
    """The last horizons before it were lost, so that it rests before the end of the newest."""
    observed = move(
        SHORT, lambda time: 1.0, Drives(lag=0.005), Sensors(0.008, 0.0, resolution), tracking_tolerance=0.1,
        controller_state=controller_state, lost=lambda time: begin < time < begin + 0.11,
        silent=lambda time: begin + 0.11 < time < begin + 1.0,
    )  # fmt: skip
    assert not observed.node.fault and observed.node.interruptions == 1
    assert np.allclose(observed.reference[-1], SHORT.plan.position[-1], atol=1e-6)
    observed.check()


@pytest.mark.parametrize("begin", [1.4, 2.3])
def test_a_controller_that_stood_still_and_jumps_is_no_collision(begin):
    stalled = lambda time: begin < time < begin + 0.11  # noqa: E731
    same = {"drives": Drives(lag=0.005), "tracking_tolerance": 0.05, "stalled": stalled}
    observed = move(TABLE, lambda time: 1.0, **same)
    assert not observed.node.fault and observed.node.interruptions == 1
    assert np.allclose(observed.reference[-1], TABLE.plan.position[-1], atol=1e-6)
    observed = move(TABLE, lambda time: 1.0, **same, held=lambda time: begin + 0.05 < time)
    assert "driver stood still for 0.11 s" in observed.node.fault and "may go on" in observed.node.fault


def test_a_driver_that_stands_still_again_and_again_is_named():
    stalled = lambda time: any(begin < time < begin + 0.11 for begin in (1.4, 3.7, 6.0))  # noqa: E731
    observed = move(TABLE, lambda time: 1.0, Drives(lag=0.005), tracking_tolerance=0.05, stalled=stalled)
    assert observed.node.interruptions == 2
    assert "stood still for 0.11 s" in observed.node.fault and "3 times within 10 s; give the" in observed.node.fault


def test_a_driver_that_stood_still_is_no_sign_of_a_scaled_speed():
    """It stood still twice, and a moment without progress follows: the third one would be a fault of the controller."""
    observed = move(
        TABLE, lambda time: float(not 4.9 < time < 4.93), Drives(lag=0.005), tracking_tolerance=0.05,
        stalled=lambda time: any(begin < time < begin + 0.11 for begin in (1.4, 3.0)),
    )  # fmt: skip
    assert not observed.node.fault and observed.node.interruptions == 3
    assert np.allclose(observed.reference[-1], TABLE.plan.position[-1], atol=1e-6)
