"""Recordings of the simulated biped, made once, and the robot models that go with them."""

from functools import cache

import numpy as np
import pinocchio as pin

from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.simulation import LeggedRobotOptions, MovementOptions, PerturbationOptions
from inertid_ros.data.recording import Recording
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import LeggedRobotDescription, legged_robot
from inertid_ros.simulation.legged_robot import LeggedRobot, simulate_movements


def robot_options(robot: LeggedRobotDescription, **changes) -> RobotOptions:
    """A free base on the robot's plates, joints without friction."""
    return RobotOptions(base="free", plates=robot.plate_options(), drive_terms=(), **changes)


@cache
def biped(movements: int = 8, noise: bool = True, seed: int = 1) -> Recording:
    """The biped moving on its two plates."""
    options = LeggedRobotOptions(seed=seed, movement=MovementOptions(movements=movements, seconds=1.2))
    return simulate_movements(LeggedRobot(legged_robot("biped"), options), noise=noise, name="biped")


@cache
def truth() -> RobotModel:
    """The biped as it is."""
    robot = legged_robot("biped")
    return load_model(robot.urdf, robot_options(robot))


@cache
def prior(seed: int = 2) -> RobotModel:
    """The biped as its maker describes it."""
    rng = np.random.default_rng(seed)
    bodies = perturb(truth(), rng, PerturbationOptions(mass_uncertainty=0.5, region_scale=2.0))
    return load_model(write_urdf(truth(), bodies), truth().options)


def com_error(model: RobotModel, bodies: np.ndarray, configurations: np.ndarray) -> float:
    """RMS distance of the centre of mass from the true one [m]."""
    found, true = (
        np.array([pin.centerOfMass(m, m.createData(), q).copy() for q in configurations])
        for m in (model.with_bodies(bodies), truth().pinocchio)
    )
    return float(np.sqrt(np.mean(np.sum((found - true) ** 2, axis=1))))
