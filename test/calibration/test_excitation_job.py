"""What is prepared for a robot from a plan file is that plan, and what is told of it is true."""

import numpy as np
import pytest
from support.nodes.two_links import URDF, write_plan

from inertid_ros.calibration.planning import ExcitationJob, prepare_motion
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ExcitationError


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    return write_plan(path, duration=6.0), path


@pytest.mark.parametrize("speed_scale", [1.0, 0.3])
def test_what_is_commanded_is_the_plan_that_was_reviewed(reviewed, speed_scale):
    plan, path = reviewed
    job = ExcitationJob(URDF, np.array([0.1, -0.2]), plan_file=str(path), speed_scale=speed_scale)
    prepared = prepare_motion(job, lambda progress: None)
    table, compared = prepared.table, 0
    for phase in np.arange(prepared.approach_s, table.duration, 0.05):
        brake = table.brake_index(phase, table.options.horizon_s)
        horizon = table.horizon(phase, brake, clock=phase)
        times = horizon.stamp + horizon.time_from_start
        followed = (times > prepared.approach_s) & (times < brake * table.options.grid_s)
        reviewed_position = plan.sample((times[followed] - prepared.approach_s) * speed_scale)[0]
        np.testing.assert_allclose(horizon.position[followed], reviewed_position, rtol=0, atol=1e-9)
        compared += int(followed.sum())
    assert compared > 500


def test_one_line_tells_speed_and_ranges(reviewed):
    plan, path = reviewed
    job = ExcitationJob(URDF, plan.start, plan_file=str(path), speed_scale=0.1)
    summary = prepare_motion(job, lambda _: None).summary
    low, high = plan.position[:, 0].min(), plan.position[:, 0].max()
    fastest = 0.1 * np.abs(plan.velocity[:, 0]).max()
    assert "speed scale 0.1" in summary and f"shoulder {low:.2f} to {high:.2f}, at most {fastest:.2f}/s" in summary


def test_a_free_base_is_refused_in_one_line(reviewed):
    job = ExcitationJob(URDF, np.zeros(2), plan_file=str(reviewed[1]), robot=RobotOptions(base="free"))
    with pytest.raises(ExcitationError, match="its base is free"):
        prepare_motion(job, lambda _: None)
