"""A small robot whose truth is known, its wrong URDF, and recordings of it with friction and noise."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.robot import RobotOptions
from inertid_ros.data.recording import Recording
from inertid_ros.report.results import CalibrationOutcome
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model

VISCOUS, COULOMB = 0.4, 0.3


@dataclass(frozen=True)
class Case:
    """A true robot, the URDF that is given instead, and recordings."""

    truth: RobotModel
    given: RobotModel
    recordings: tuple[Recording, ...]


def synthetic_case(seed: int = 0, joints: int = 3, recordings: int = 2, duration: float = 15.0) -> Case:
    """Each recording is another motion."""
    rng = np.random.default_rng(seed)
    truth = load_model(random_urdf(rng, joints, branched=False))
    given = load_model(write_urdf(truth, perturb(truth, rng)))
    made = [_recorded(truth, rng, duration, f"recording {index}") for index in range(recordings)]
    return Case(truth, given, tuple(made))


def held_recording(truth: RobotModel, locked: dict[str, float], seed: int = 0, duration: float = 15.0) -> Recording:
    """Recording of the same robot with some joints held at a position."""
    held = load_model(truth.urdf, RobotOptions(locked_joints=locked))
    return _recorded(held, np.random.default_rng(seed), duration, "held")


def _recorded(truth: RobotModel, rng: np.random.Generator, duration: float, name: str) -> Recording:
    time = np.arange(0.0, duration, 0.01)
    q, v, a = random_motion(rng, truth.joints).sample(time)
    tau = inverse_dynamics(truth, q, v, a) + VISCOUS * v + COULOMB * np.sign(v)
    noisy = q + 1e-5 * rng.normal(size=q.shape), tau + 0.02 * rng.normal(size=q.shape)
    return Recording(truth.joint_names, time, *noisy, velocity=v, name=name)


@cache
def calibrated_case(seed: int = 3) -> tuple[Case, CalibrationOutcome]:
    """A case with its calibration by the first recording, validated on the second; made once for all tests."""
    case = synthetic_case(seed)
    return case, calibrate(case.given, case.recordings[:1], case.recordings[1:])
