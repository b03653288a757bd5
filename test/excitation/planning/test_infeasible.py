"""Requests that no motion can meet are refused at once, with constraint, joint or link, time and value."""

import json
import re

import attrs
import numpy as np
import pytest
from support.robots.quick_plans import FINGERS, PANDA_START, panda, panda_limits

from inertid_ros.cli.main import main
from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions, LimitOptions, ObstacleOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.motions import QuinticRamp
from inertid_ros.excitation.plan import plan_of
from inertid_ros.robot.model import load_model

QUICK = ExcitationOptions(duration_s=5.0, base_frequency_hz=0.2, starts=2, improved=0, criterion_samples=20)
BALL = {"shape": "sphere", "radius": 0.1, "xyz": [0.31, 0.0, 0.6]}


@pytest.fixture(scope="module")
def model(robots):
    return panda(robots)


def refused(words, action):
    with pytest.raises(InertidError, match=words) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_ranges_within_the_margin_are_counted(model):
    words = r"'panda_joint2': its range is within twice limits.position_margin .*and 2 more"
    refused(words, lambda: motion_limits(model, LimitOptions(position_margin=2.0)))


def test_effort_limits_missing_in_the_urdf(model):
    bare = re.sub(r'(<limit[^>]*) effort="[^"]*"', r"\1", model.urdf)
    assert bare != model.urdf
    robot = load_model(bare, model.options)
    words = "'panda_joint1': effort limit is missing or not finite; set limits.effort"
    refused(words, lambda: motion_limits(robot))


def test_a_plan_that_breaks_a_constraint_on_its_way_says_when(model, robots):
    limits = panda_limits(model)
    far = PANDA_START + np.array([1.2, 0, 0, 0, 0, 0, 0])
    ramp = QuinticRamp.within(far, far - np.array([2.4, 0, 0, 0, 0, 0, 0]), limits.velocity, limits.acceleration)
    plan = plan_of(ramp, limits)
    collision = CollisionOptions(mesh_folders=(str(robots.parent.parent),), obstacles={"ball": ObstacleOptions(**BALL)})
    constraints = motion_constraints(model, limits, attrs.evolve(QUICK, collision=collision))
    refused(
        r"link 'panda_.*': comes to -?0\.\d+ m from 'ball' at \d\.\d\d\d s, closer than the clearance 0\.0500 m",
        lambda: check_plan(plan, model, limits, constraints=constraints),
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"limits": {"position": {"panda_joint3": [0.2, 0.2]}}}, "position range 0.2 to 0.2 has no width"),
        ({"excitation": {"collision": {"obstacles": {"ball": BALL}}}}, "from 'ball' in the start pose"),
        ({"excitation": {"balance": {"support": {"x": [0, 1], "y": [0, 0]}}}}, "has 2 corners and is empty"),
        ({"limits": {"effort": {"panda_joint4": 5}}}, "to stand at the start pose, beyond its effort limit"),
        ({"excitation": {"floor_m": 0.9}}, "from the floor at 0.900 m"),
    ],
)
def test_the_command_says_so_and_exits_with_2(robots, tmp_path, capsys, settings, words):
    config, urdf = tmp_path / "config.yaml", robots / "panda_description" / "urdf" / "panda.urdf"
    config.write_text(json.dumps({**settings, "robot": {"locked_joints": dict(FINGERS)}}))
    start = [f"panda_joint{index + 1}={value}" for index, value in enumerate(PANDA_START)]
    command = ["excite", "--urdf", str(urdf), "--config", str(config), "--output", str(tmp_path / "out")]
    status = main([*command, *(word for entry in start for word in ("--start", entry))])
    assert status == 2
    told = capsys.readouterr().err
    assert words in told.replace("\n", " ")
    assert not (tmp_path / "out").exists()
