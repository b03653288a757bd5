"""Arms, limits and quick plans that the tests of excitation and simulation share."""

from pathlib import Path

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions, LimitOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.excitation.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.motions import LinearTrajectory
from inertid_ros.excitation.plan import Plan, plan_of
from inertid_ros.excitation.planning.planner import random_shape
from inertid_ros.excitation.planning.planning_problem import make_basis, scale_to_limits
from inertid_ros.robot.model import RobotModel, load_model

PANDA_START = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
FINGERS = {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02}


def panda(robots: Path) -> RobotModel:
    """The Panda arm with its fingers held."""
    return load_model(robots / "panda_description" / "urdf" / "panda.urdf", RobotOptions(locked_joints=FINGERS))


def simple_limits(joints: int, acceleration: float = 8.0) -> MotionLimits:
    """Limits of an arm that does not exist."""
    one = np.ones(joints)
    names = tuple(f"joint{index}" for index in range(joints))
    return MotionLimits(names, -2.0 * one, 2.5 * one, 1.5 * one, acceleration * one, 100.0 * one)


def quick_plan(
    limits: MotionLimits, start: np.ndarray, seed: int, options: ExcitationOptions | None = None, model_hash: str = ""
) -> Plan:
    """A random motion that touches its limits, in no time."""
    options = options or ExcitationOptions(duration_s=10.0)
    basis = make_basis(options)
    inner = limits.scaled(options.limit_use, options.limit_use)
    shape = random_shape(basis, start, inner, np.random.default_rng(seed))
    trajectory = scale_to_limits(LinearTrajectory(basis, start, shape), inner, options.knot_step_s)
    return plan_of(trajectory, limits, motion_type=options.kind, model_hash=model_hash, seed=seed)


def panda_limits(model: RobotModel) -> MotionLimits:
    """Limits of the Panda with the accelerations that its maker gives."""
    given = zip(model.joint_names, (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0), strict=True)
    return motion_limits(model, LimitOptions(acceleration=dict(given)))
