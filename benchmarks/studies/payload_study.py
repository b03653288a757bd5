"""A simulated and calibrated Panda that holds boxes of random mass, size and place."""

from dataclasses import dataclass, replace
from functools import cached_property

import attrs
import numpy as np

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.excitation import LimitOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import MassComInertia
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.payload.equations import FrictionDrift
from inertid_ros.payload.offline import PayloadOptions, payload_offline
from inertid_ros.payload.payload import Payload
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import load_bodies, write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.simulated_robot import SimulatedRobot, homogeneous_box, simulate

from .simulated_panda import ACCELERATION, MODEL, START, SimulatedPanda

TOOL = "panda_link8"
DRIFT = FrictionDrift()
_MOVES, _AMPLITUDE, _KNOT_S = 4, 0.6, 0.01


def random_box(rng: np.random.Generator, mass: float | None = None) -> MassComInertia:
    """Return a box of a mass [kg], or of 0.2 to 5 kg, that the flange can hold."""
    mass = float(rng.uniform(0.2, 5.0)) if mass is None else mass
    return homogeneous_box(rng, mass, sides=(0.04, 0.25), ahead=(0.03, 0.15))


def box_load(box: MassComInertia) -> LoadOptions:
    """Return the box as a load of recordings named ``box``."""
    mass, x, y, z, *upper = box.numbers.tolist()
    return LoadOptions(TOOL, mass, ("box*",), com=(x, y, z), inertia=tuple(upper))


@dataclass(frozen=True)
class CalibratedPanda:
    """One arm, its wrong URDF and the result directory of its calibration.

    Attributes
    ----------
    seed : int
        Seed of all random draws.
    directory : str
        Directory of the result.
    """

    seed: int
    directory: str

    @cached_property
    def arm(self) -> SimulatedPanda:
        """The arm without payload."""
        return SimulatedPanda(self.seed, {})

    @cached_property
    def result(self) -> Result:
        """Calibration with two motions of 20 s, the second motion held out."""
        recordings = [self.arm.record(f"empty{motion}", motion) for motion in range(2)]
        configuration = Configuration(RobotOptions(locked_joints=MODEL.locked_joints))
        outcome = calibrate(self.arm.given, recordings[:1], recordings[1:], configuration)
        return Result.load(outcome.save(self.directory, force=True))

    def record(self, box: MassComInertia | None, draw: int, friction: Array, seconds: float = 5.0) -> Recording:
        """Recording of four movements from rest to rest, with friction times factors ``(2, n)``."""
        loads = {} if box is None else {"box": box_load(box)}
        name = "empty" if box is None else "box"
        true = self.arm.true
        loaded = load_model(write_urdf(true, true.body_prior + load_bodies(true, loads, name)), MODEL)
        options = SimulationOptions(seed=self.seed)
        drives = SimulatedRobot(true, options, start=START).drives
        drives = replace(drives, viscous=friction[0] * drives.viscous, coulomb=friction[1] * drives.coulomb)
        noise = attrs.evolve(options, seed=10_000 * (self.seed + 1) + 2 * draw + (box is None))
        robot = SimulatedRobot(loaded, noise, drives=drives, start=START)
        return simulate(robot, self._movements(draw, seconds), state_hz=200.0, name=name)

    def _movements(self, draw: int, seconds: float) -> Plan:
        rng = np.random.default_rng([self.seed, draw])
        given = self.arm.given
        limits = motion_limits(
            given, LimitOptions(acceleration=dict(zip(given.joint_names, ACCELERATION, strict=True)))
        )
        poses = np.clip(
            START + rng.uniform(-_AMPLITUDE, _AMPLITUDE, (_MOVES + 1, len(START))),
            given.limits.lower + 0.1,
            given.limits.upper - 0.1,
        )
        rest = np.zeros_like(poses)
        curve = PiecewiseQuintic(np.linspace(0.0, seconds, _MOVES + 1), poses, rest, rest)
        time = np.linspace(0.0, seconds, int(round(seconds / _KNOT_S)) + 1)
        return Plan(given.joint_names, time, *curve.sample(time), limits, "ramp", given.hash)

    def drifted(self, rng: np.random.Generator, before: Array | float = 1.0, share: float | None = None) -> Array:
        """Factors ``(2, n)`` of friction of a later recording; normal, never below zero."""
        share = DRIFT.since_calibration if share is None else share
        return np.maximum(before * (1 + share * rng.standard_normal((2, len(START)))), 0.0)

    def payload(self, box: MassComInertia, draw: int, with_reference: bool = False) -> Payload:
        """Payload estimate from five seconds, with or without a reference recording of the same session."""
        rng = np.random.default_rng([self.seed, draw, 1])
        friction = self.drifted(rng)
        reference = [self.record(None, draw + 5000, friction)] if with_reference else []
        if with_reference:
            friction = self.drifted(rng, friction, DRIFT.between_recordings)
        recording = self.record(box, draw, friction)
        return payload_offline(self.result, [recording], reference, PayloadOptions(TOOL)).payload
