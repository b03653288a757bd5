"""What drives usually are behind their command is learned within a second or two, whatever their order."""

import numpy as np
import pytest
from support.scaled_motion import CYCLE_S, Arm, Drives, table

from inertid_ros.excitation.execution.drive_response import DriveResponse

CYCLES = 25  # of a horizon
POINTS = table(1).points


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
