"""The usual lag of drives is learned within two seconds; progress is known from enough states or a reference."""

import numpy as np
import pytest
from support.scaled_motion import CYCLE_S, Arm, Drives, table

from inertid_ros.excitation.execution.tracking import DriveResponse, PathProgress

CYCLES = 25  # of a horizon
POINTS = table(1).points
VELOCITY, REST = np.array([1.0, 0.0]), np.zeros(2)


def rows(drives: Drives) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Error, velocity and acceleration ``(N, 2)`` along a motion."""
    times = np.arange(0.0, POINTS.time[-1], CYCLE_S)
    position, velocity, acceleration = POINTS.sample(times)
    arm = Arm(drives, position[0])
    return position - np.array([arm.update(row) for row in position]), velocity, acceleration


@pytest.mark.parametrize(
    ("drives", "tolerance"),
    [
        (Drives(lag=0.02), 3e-4),
        (Drives(lag=0.05), 1e-3),
        (Drives(delay=0.03), 1e-3),
    ],
)
def test_the_error_of_the_next_horizon_is_known_after_two_seconds(drives, tolerance):
    response, (error, velocity, acceleration) = DriveResponse(2), rows(drives)
    unexpected = []
    for begin in range(0, len(error) - CYCLES, CYCLES):
        now = slice(begin, begin + CYCLES)
        unexpected.append(np.abs(error[now] - response.expected(velocity[now], acceleration[now])).max())
        response.learn(error[now], velocity[now], acceleration[now], CYCLES * CYCLE_S)
    late = unexpected[round(2.0 / (CYCLES * CYCLE_S)) :]
    assert max(late) < tolerance < 0.1 * np.abs(error).max()


def test_weight_is_learned_where_the_robot_stands():
    response, zero = DriveResponse(2), np.zeros((CYCLES, 2))
    response.learn(zero + [0.02, -0.01], zero, zero, 0.05)
    np.testing.assert_allclose(response.expected(zero[:1], zero[:1]), [[0.02, -0.01]], atol=1e-5)


def with_states(count: int, lost: float, progress: PathProgress) -> PathProgress:
    """After two horizons, so many states at 33 Hz of a robot that has lost a way at once."""
    progress.sent(0.9)
    progress.update(0.99, REST, VELOCITY, REST)
    progress.sent(1.0)
    for index in range(count):
        progress.update(1.0 + 0.03 * (index + 1), np.array([lost, 0.0]), VELOCITY, REST)
    return progress


def test_a_horizon_waits_for_states_enough():
    assert not with_states(3, 0.0, PathProgress(2, 0.01)).is_known(1.15)
    assert with_states(4, 0.0, PathProgress(2, 0.01)).is_known(1.15)


def test_the_controllers_own_word_is_enough():
    progress = with_states(0, 0.0, PathProgress(2, 0.01))
    progress.update_reference(1.02, REST, VELOCITY)
    assert progress.is_known(1.03)


def test_a_single_state_after_a_horizon_tells_a_large_loss():
    assert with_states(1, 0.5, PathProgress(2, 0.01)).disagrees(1.05)
    assert not with_states(1, 0.0, PathProgress(2, 0.01)).disagrees(1.05)


def test_a_loss_is_not_forgotten_where_the_path_turns():
    progress = with_states(1, 0.5, PathProgress(2, 0.01))
    assert progress.disagrees(1.05)
    for index in range(4):
        progress.update(1.06 + 0.01 * index, np.array([0.5, 0.0]), VELOCITY[::-1], REST)
    assert progress.disagrees(1.1)
    progress.sent(1.1)
    assert not progress.disagrees(1.11)
