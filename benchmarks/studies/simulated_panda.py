"""A simulated Panda with a wrong URDF, loads and motions, for studies of sessions with loads."""

import sys
from dataclasses import dataclass, replace
from functools import cached_property

import attrs
import numpy as np

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions, LimitOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.robot.body_changes import load_bodies, perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

START = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
MODEL = RobotOptions(locked_joints={"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02})
ACCELERATION = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)  # rad/s^2, by the maker of the arm


@dataclass(frozen=True)
class SimulatedPanda:
    """One arm, its drives and the given, wrong URDF.

    Attributes
    ----------
    seed : int
        Seed of drives, noise and the wrong URDF.
    loads : dict
        Loads by name; recordings with this name have the load.
    seconds : float
        Length of every motion.
    """

    seed: int
    loads: dict[str, LoadOptions]
    seconds: float = 20.0

    @cached_property
    def true(self) -> RobotModel:
        """The robot without load."""
        try:
            return load_model(example_urdf(), MODEL)
        except ModelError as error:
            sys.exit(f"skipped: {error}")

    @cached_property
    def given(self) -> RobotModel:
        """The given URDF, wrong by point masses."""
        return load_model(write_urdf(self.true, perturb(self.true, np.random.default_rng(self.seed))), MODEL)

    def record(self, name: str, motion: int, friction: float = 1.0) -> Recording:
        """Recording of a random motion, with the load for its name, and with friction times a factor."""
        bodies = self.true.body_prior + load_bodies(self.true, self.loads, name)
        loaded = load_model(write_urdf(self.true, bodies), MODEL)
        options = SimulationOptions(seed=self.seed)
        # The drives do not depend on the load.
        drives = SimulatedRobot(self.true, options, start=START).drives
        drives = replace(drives, viscous=friction * drives.viscous, coulomb=friction * drives.coulomb)
        noise = attrs.evolve(options, seed=1000 * self.seed + motion)
        robot = SimulatedRobot(loaded, noise, drives=drives, start=START)
        return simulate(robot, self._plan(motion), state_hz=200.0, name=name)

    def _plan(self, motion: int) -> Plan:
        acceleration = dict(zip(self.given.joint_names, ACCELERATION, strict=True))
        limits = motion_limits(self.given, LimitOptions(acceleration=acceleration))
        random = ExcitationOptions(
            duration_s=self.seconds,
            starts=1,
            improved=0,
            seed=100 * self.seed + motion,
            mounting="none",
            collision=CollisionOptions(mesh_folders=(str(example_urdf().parents[3]),)),
        )
        return plan_excitation(self.given, limits, START, random)


def with_efforts(recording: Recording, efforts: Array) -> Recording:
    """Recording with other efforts ``(N, n)``."""
    return replace(recording, effort=efforts)
