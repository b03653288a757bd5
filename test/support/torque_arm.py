"""A simulated arm of two links under adaptive control, under a given time, and what is done to it."""

import copy
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from support.nodes.two_links import COULOMB, TRUE_URDF, VISCOUS, two_links

from inertid_ros.adaptive_control.controlled_arm import (
    ControlledArm,
    FirstEstimate,
    adaptive_controller,
    first_estimate,
)
from inertid_ros.adaptive_control.controller import CalibratedDrives
from inertid_ros.config.excitation import EffortControlOptions, LimitOptions, MonitorOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.mujoco_model import import_mujoco
from inertid_ros.simulation.simulated_robot import Drives, SimulatedRobot

TICK_S, START = 0.002, np.array([0.3, 0.6])
CLOCK_S = 1000.0  # of stamps, ahead of the steady clock
OPTIONS = EffortControlOptions(speed=30.0, largest_factor=20.0)


@dataclass
class States:
    """What joint states tell in place of the truth."""

    silent: bool = False
    frozen: bool = False
    without_velocity: bool = False
    jump: np.ndarray = field(default_factory=lambda: np.zeros(2))
    stamp_offset: float = 0.0
    clock_offset: float = 0.0  # of this machine's clock, with which stamps are compared
    last: object = None


class TorqueArm:
    """See the module; ``time`` is the steady clock [s]."""

    def __init__(self, options: EffortControlOptions = OPTIONS, calibrated: bool = True, **monitor: float) -> None:
        self.model, self.limits = two_links()
        self.truth = load_model(TRUE_URDF)
        zero = np.zeros(2)
        drives = Drives(zero, np.full(2, VISCOUS), np.full(2, COULOMB), zero)
        self.robot = SimulatedRobot(self.truth, SimulationOptions(), drives=drives, start=START)
        self.robot.step(100)
        self.states = States()
        self.efforts: list[np.ndarray] = []
        self.speeds: list[np.ndarray] = []
        self.times: list[float] = []
        own = {"tracking_tolerance": 0.2, "state_timeout_s": 0.05, **monitor}
        begin, estimate = self.robot.state(), first_estimate(self.model)
        if calibrated:
            estimate = FirstEstimate(self.truth, self.robot.bodies, CalibratedDrives(self.truth, self.robot.truth))
        self.measured = begin.effort
        self.arm = ControlledArm(
            adaptive_controller(estimate, options), self.model, LimitOptions(), options,
            MonitorOptions(**own), begin,
        )  # fmt: skip

    @property
    def time(self) -> float:
        return self.robot.time

    def run(self, seconds: float) -> "TorqueArm":
        """Tick and simulate."""
        for _ in range(round(seconds / TICK_S)):
            self._tell()
            effort = self.arm.tick(self.time)
            if effort is not None:
                self.robot.command_effort(effort)
                self.efforts.append(effort)
            self.robot.step(round(TICK_S / self.robot.options.timestep_s))
            self.speeds.append(self.robot.true_state().velocity)
            self.times.append(self.time)
        return self

    def pause(self, seconds: float) -> "TorqueArm":
        """The process is held up; the driver applies the last effort."""
        for _ in range(round(seconds / TICK_S)):
            self.robot.command_effort(self.efforts[-1])
            self.robot.step(round(TICK_S / self.robot.options.timestep_s))
        return self

    def grip(self, mass: float, com: float = 0.3) -> None:
        """Hold a box on the lower link from now on."""
        bodies = self.truth.consistent_body_prior.copy()
        bodies[1] += from_mass_com_inertia(mass, np.array([com, 0.0, 0.0]), mass * 0.1**2 / 6 * np.eye(3))
        self.robot.become(self.truth.with_prior_bodies(bodies))

    def sway(self, seconds: float = 2.0, size: float = 0.4, rounds: int = 1) -> PiecewiseQuintic:
        """A trajectory from the pose at the start and back, which begins now."""
        time = np.linspace(0.0, seconds * rounds, 20 * rounds + 1)[1:]
        omega = 2 * np.pi / seconds
        shape = size * np.array([0.7, 1.0])
        position = START + shape * (np.cos(omega * time)[:, None] - 1) / 2
        velocity = -0.5 * omega * shape * np.sin(omega * time)[:, None]
        velocity[-1] = 0.0
        acceleration = -0.5 * omega**2 * shape * np.cos(omega * time)[:, None]
        return PiecewiseQuintic(self.time + time, position, velocity, acceleration)

    def swaying(self, rounds: int = 2) -> "TorqueArm":
        """In motion for 0.6 s."""
        self.arm.follow(self.sway(rounds=rounds), self.time)
        return self.run(0.6)

    def rests(self) -> bool:
        """Whether the arm has hardly moved in the last tenth of a second."""
        return bool(np.abs(self.speeds[-50:]).max() < 0.02)

    def check_limits(self, acceleration: float = 1.5) -> None:
        """Speeds kept their limits, and over 20 ms accelerations hardly exceeded theirs."""
        speeds = np.array(self.speeds)
        assert (np.abs(speeds) <= 1.02 * self.limits.velocity).all()
        change = np.abs(speeds[10:] - speeds[:-10]) / (10 * TICK_S)
        assert (change <= acceleration * self.limits.acceleration).all(), change.max()
        effort = np.asarray(self.arm.controller.options.effort_limit)
        assert (np.abs(self.efforts) <= effort + 1e-9).all()

    def _tell(self) -> None:
        faults, sample = self.states, self.robot.state()
        if faults.frozen and faults.last is not None:
            sample = replace(faults.last, time=sample.time)
        faults.last = sample
        if faults.silent:
            return
        velocity = np.full(2, np.nan) if faults.without_velocity else sample.velocity
        stamp, clock = CLOCK_S + sample.time + faults.stamp_offset, CLOCK_S + self.time + faults.clock_offset
        self.arm.update(stamp, clock, self.time, sample.position + faults.jump, velocity, sample.effort)


def holding() -> TorqueArm:
    """In control for a second, at rest."""
    return _copy(_holding())


def swaying() -> TorqueArm:
    """In control for a second, then in motion."""
    return _copy(_swaying())


@cache
def _holding() -> TorqueArm:
    return TorqueArm().run(1.0)


@cache
def _swaying() -> TorqueArm:
    return holding().swaying()


def _copy(arm: TorqueArm) -> TorqueArm:
    module = import_mujoco()  # which a robot keeps, and which cannot be copied
    return copy.deepcopy(arm, {id(module): module})
