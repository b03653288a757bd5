"""Efforts of a bus whose sign is a bit that the driver reads as a part of the number."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.drawn_robots import described_robot, drawn_robot

from inertid_ros.data.screening.channel_checks import check_sign_bits


@pytest.mark.parametrize("seed", range(6))
def test_a_bit_for_the_sign_is_found_and_no_magnitude_is_taken_for_one(seed: int):
    rng = np.random.default_rng(seed)
    robot = drawn_robot(described_robot("chain", rng), rng)
    recording = robot.moved(rng, "servos", seconds=10.0)
    effort = recording.effort
    bit = float(rng.uniform(1.2, 4.0)) * np.abs(effort).max()
    (found,) = check_sign_bits(replace(recording, effort=np.where(effort < 0, bit - effort, effort)), robot.given)
    assert found.cause == "effort_magnitude" and float(found.evidence.split(" below ")[1].split(")")[0]) < 1.3 * bit
    for right in (effort, np.abs(effort), np.abs(effort) + bit):
        assert not check_sign_bits(replace(recording, effort=right), robot.given)
