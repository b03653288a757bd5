"""A robot that is followed: parameters and changes as joint states come, whatever happens to these."""

import numpy as np
import pytest
from support.recordings.joint_state_stream import COULOMB, PERIOD, known_arm, states

from inertid_ros.core.errors import RecordingError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.core.samples import JointSample
from inertid_ros.monitoring.change_detector import Cause, with_stream_noise
from inertid_ros.monitoring.followed_robot import FollowedRobot, PayloadMeasurement
from inertid_ros.monitoring.streams import CausalFilter, StreamFault, StreamOptions
from inertid_ros.payload.equations import CalibratedRobot, ToolFrame

STREAM = StreamOptions(PERIOD, 10.0, velocity_noise=0.0)


@pytest.fixture(scope="module")
def arm() -> CalibratedRobot:
    robot = known_arm()
    causal = CausalFilter(robot.equations.model, STREAM)
    taken = [causal.push(*state) for state in zip(*states(robot, 10.0, seed=30), strict=True)]
    return with_stream_noise(robot, [block for block in taken if block is not None])


def messages(arm, seconds, seed=3, changes=()):
    for time, *channels in zip(*states(arm, seconds, seed, changes), strict=True):
        yield JointSample(round(time * 1e9), *channels, np.zeros(0))


def with_held(arm, link, factor):
    bodies = arm.layout.bodies(arm.parameters).copy()
    bodies[link] *= factor
    return bodies


def test_parameters_come_at_their_period_and_a_payload_is_told(arm):
    followed, estimates, told = FollowedRobot(arm, STREAM), [], []
    for state in messages(arm, 6.0, changes=[(3.0, with_held(arm, 2, 1.5), COULOMB)]):
        found = followed.take(state)
        if found.estimate is not None:
            estimates.append(found.estimate)
            stamp = followed.checks.stamp_ns(found.estimate.time)
            assert state.stamp_ns - stamp == pytest.approx(1e9 * followed.filter.delay, abs=3e6)
        if found.news:
            told.append((state.stamp_ns * 1e-9, followed.changes.current))
    assert 8 <= len(estimates) <= 13
    assert all(is_consistent(arm.layout.bodies(each.parameters)).all() for each in estimates)
    assert told[0][1] is None and told[1][0] < 3.5
    assert (told[2][1].cause, told[2][1].subject) == (Cause.PAYLOAD, "link2") and told[2][1].settled
    assert not followed.faults


def test_no_fault_of_the_stream_is_taken_for_a_change(arm):
    """The stream stops, repeats, jumps, loses values, and its clock is set; parameters stay where they are."""
    followed, estimates = FollowedRobot(arm, STREAM), []
    original, offset = list(messages(arm, 20.0)), 0
    for index, state in enumerate(original):
        second, within = divmod(index, 400)
        stamp, position, effort = state.stamp_ns + offset, state.position, state.effort
        if second == 2 and within < 100:
            continue  # stops
        if second == 3 and within < 100:
            state = original[index - within]  # repeats
            stamp, position, effort = stamp, state.position, state.effort
        if second == 4 and within < 3:
            position = position + np.array([0.0, 2.0, 0.0])
        if second == 5 and within < 50:
            effort = np.full(3, np.nan)
        if second == 6 and within == 0:
            offset -= 100_000_000_000
            stamp = state.stamp_ns + offset
        found = followed.take(JointSample(stamp, position, state.velocity, effort, np.zeros(0)))
        if found.news:
            assert followed.changes.current is None, (index, followed.changes.current)
        if found.estimate is not None:
            estimates.append(found.estimate.parameters)
    wanted = {StreamFault.PAUSE, StreamFault.STUCK, StreamFault.JUMP, StreamFault.NOT_FINITE, StreamFault.CLOCK}
    assert wanted <= set(followed.faults)
    masses = np.array([arm.layout.bodies(each)[:, 0] for each in estimates])
    np.testing.assert_allclose(masses[-1], arm.layout.bodies(arm.parameters)[:, 0], rtol=0.1)


def test_a_robot_at_rest_shows_nothing_and_no_parameters_are_published(arm):
    followed, rng, found = FollowedRobot(arm, STREAM), np.random.default_rng(0), []
    first, *_ = messages(arm, 0.01)
    for index in range(600):
        noise = 1e-5 * rng.normal(size=(3, 3))
        state = JointSample(
            round(1e9 * PERIOD * index), first.position + noise[0], noise[1], first.effort + noise[2], np.zeros(0)
        )
        found.append(followed.take(state))
    assert not any(each.news or each.estimate is not None for each in found)
    assert any(each.block is not None for each in found)


def measurement(arm, seconds=8.0):
    followed = FollowedRobot(arm, STREAM)
    return followed, PayloadMeasurement(followed, ToolFrame.from_link(arm.equations.model), seconds)


def test_a_payload_is_known_better_the_longer_it_is_measured(arm):
    followed, measured = measurement(arm)
    held = with_held(arm, 2, 1.5)
    uncertain = [measured.progress().uncertain]
    deviations = []
    for state in messages(arm, 9.0, changes=[(0.0, held, COULOMB)]):
        found = followed.take(state)
        measured.add(state, found.state, found.block)
        if found.block is not None:
            uncertain.append(measured.progress().uncertain)
            deviations.append(measured.progress().mass_deviation)
        if measured.fraction == 1.0:
            break
    assert "move the robot" in uncertain[0] and uncertain[-1] == ""
    assert deviations[-1] < 0.5 * deviations[0]
    mass = 0.5 * arm.layout.bodies(arm.parameters)[2, 0]
    assert measured.progress().mass == pytest.approx(mass, abs=4 * measured.progress().mass_deviation)
    recording = measured.recording()
    assert recording.joint_names == arm.equations.model.joint_names
    assert recording.duration == pytest.approx(8.0, abs=0.01) and measured.fraction == 1.0


def test_a_measurement_ends_where_states_do_not_belong_together(arm):
    followed, measured = measurement(arm)
    with pytest.raises(RecordingError, match="payload: joint1 jumps by 2 .*measure again"):
        for index, state in enumerate(messages(arm, 2.0)):
            shift = 2.0 * np.array([0.0, index > 100, 0.0])
            state = JointSample(state.stamp_ns, state.position + shift, state.velocity, state.effort, np.zeros(0))
            found = followed.take(state)
            measured.add(state, found.state, found.block)
