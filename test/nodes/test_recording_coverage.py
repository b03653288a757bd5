"""Coverage of recordings as the identifier shows it."""

import numpy as np
import pytest
from support.nodes.two_links import two_links

pytest.importorskip("rclpy")

from inertid_ros.data.long_recording import Block  # noqa: E402
from inertid_ros.monitoring.live_coverage import RecordingCoverage  # noqa: E402
from inertid_ros.msg import IdentifierStatus  # noqa: E402

MODEL, _ = two_links()


def block(names: tuple[str, ...] = MODEL.joint_names, start: float = 0.0) -> Block:
    time = start + np.arange(0.0, 5.0, 0.005)
    q = np.sin(np.outer(time, [2.0, 3.0]))
    stamps = 10**18 + np.round(1e9 * time).astype(np.int64)
    return Block(names, stamps, {"position": q, "effort": 10 * q})


def filled(coverage: RecordingCoverage) -> IdentifierStatus:
    status = IdentifierStatus()
    coverage.fill(status)
    return status


def test_a_recording_begins_anew_by_name_and_by_sequence():
    coverage = RecordingCoverage()
    for name, sequence in (("one", 0), ("two", 0), ("two", 0)):
        coverage.add(MODEL, name, sequence, block())
        assert filled(coverage).recording == name and not filled(coverage).joint_names
        coverage.update()
        status = filled(coverage)
        assert status.joint_names == list(MODEL.joint_names) and np.isfinite(status.torque_deviation).all()
    coverage.add(MODEL, "two", 1, block(start=5.0))
    assert filled(coverage).joint_names  # as worked out before


@pytest.mark.parametrize("model", [None, MODEL])
def test_what_cannot_be_worked_out_is_left_empty(model):
    """No robot description yet, or other joints than the robot's: told where the recording is identified."""
    coverage = RecordingCoverage()
    coverage.add(model, "one", 0, block(("a", "b")))
    coverage.update()
    assert filled(coverage).recording == "one" and not filled(coverage).joint_names
