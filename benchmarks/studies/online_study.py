"""Streams of a simulated and calibrated Panda that changes during motion."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import attrs
import numpy as np

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import MassComInertia, is_consistent
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.monitoring.change_detector import Change, ChangeDetector, with_stream_noise
from inertid_ros.monitoring.online_identification import OnlineIdentification
from inertid_ros.monitoring.streams import CausalFilter, StreamOptions
from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import load_bodies, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

from .payload_study import CalibratedPanda, box_load
from .simulated_panda import MODEL, START, SimulatedPanda

PERIOD, SOLVE_EVERY = 0.005, 4  # s; blocks


@dataclass(frozen=True)
class Stream:
    """A calibrated arm with its causal filter."""

    arm: CalibratedPanda

    @property
    def result(self) -> Result:
        """Result of the calibration."""
        return self.arm.result

    @property
    def options(self) -> StreamOptions:
        """Options of the filter: cutoff and delay of the calibration."""
        report = self.result.report
        return StreamOptions(
            PERIOD, report["provenance"]["cutoff_hz"], effort_delay_s=float(report["effort_delay_s"] or 0.0)
        )

    def blocks(self, recording: Recording) -> Iterator[Samples]:
        """Output blocks of the filter for the joint states of a recording."""
        causal = CausalFilter(self.result.model, self.options)
        for time_, *state in zip(recording.time, recording.position, recording.velocity, recording.effort, strict=True):
            block = causal.push(float(time_), *state)
            if block is not None:
                yield block

    def robot(self) -> CalibratedRobot:
        """The robot with the filtered noise of a motion of its calibration."""
        result, report = self.result, self.result.report
        counts = np.array(report["effective_samples"], dtype=float)
        deviation = np.array(report["residual_deviation"], dtype=float)
        robot = CalibratedRobot(equations_of(result.model), result.parameters, result.covariance, deviation, counts)
        return with_stream_noise(robot, list(self.blocks(self.arm.arm.record("empty0", 0))))

    def record(
        self, motion: int, seconds: float, friction: Array | float = 1.0,
        change: Callable[[SimulatedRobot], None] = lambda robot: None, at: float = np.inf,
    ) -> tuple[Recording, float]:  # fmt: skip
        """Recording of a random motion, and the stamp of a change ``at`` seconds of simulated time."""
        arm = SimulatedPanda(self.arm.seed, {}, seconds)
        options = SimulationOptions(seed=self.arm.seed)
        drives = SimulatedRobot(arm.true, options, start=START).drives
        factor = np.broadcast_to(friction, (2, arm.true.joints))
        drives = replace(drives, viscous=factor[0] * drives.viscous, coulomb=factor[1] * drives.coulomb)
        noise = attrs.evolve(options, seed=777_000 + 1000 * self.arm.seed + motion)
        robot = SimulatedRobot(arm.true, noise, drives=drives, start=START)
        changed: list[float] = []

        def once(stepped: SimulatedRobot) -> None:
            if stepped.time >= at and not changed:
                changed.append(stepped.time)
                change(stepped)

        recording = simulate(robot, arm._plan(motion), state_hz=1 / PERIOD, name="stream", each_step=once)
        zero = robot.time - recording.time[-1]
        return recording, (changed[0] - zero if changed else np.inf)


def holding(model: RobotModel, box: MassComInertia) -> Callable[[SimulatedRobot], None]:
    """Change: the hand holds a box."""
    bodies = model.body_prior + load_bodies(model, {"box": box_load(box)}, "box")
    loaded = load_model(write_urdf(model, bodies), MODEL)
    return lambda robot: robot.become(loaded)


def losing(model: RobotModel, share: float) -> Callable[[SimulatedRobot], None]:
    """Change: the last link uniformly loses a share of its mass."""
    bodies = model.body_prior.copy()
    bodies[-1] *= 1 - share
    lighter = load_model(write_urdf(model, bodies), MODEL)
    return lambda robot: robot.become(lighter)


def rubbing(joint: int, factor: float) -> Callable[[SimulatedRobot], None]:
    """Change: the friction of a joint is multiplied."""

    def change(robot: SimulatedRobot) -> None:
        factors = np.where(np.arange(robot.robot.joints) == joint, factor, 1.0)
        drives = robot.drives
        robot.become(drives=replace(drives, viscous=factors * drives.viscous, coulomb=factors * drives.coulomb))

    return change


@dataclass(frozen=True)
class Detection:
    """Detection of a change: delay [s], first and settled reports; ``early`` counts alarms before the change."""

    delay: float
    first: Change | None
    settled: Change | None
    early: int


def detection(
    stream: Stream, robot: CalibratedRobot, recording: Recording, at: float, drift: object = None
) -> Detection:
    """Run the detector over a recording, until it has settled on a change."""
    detector = ChangeDetector(robot)
    arrival, first, early = np.inf, None, 0
    for block in stream.blocks(recording):
        now = float(block.time[-1]) + CausalFilter(stream.result.model, stream.options).delay
        change = detector.add(block)
        if change is None:
            continue
        if now <= at:
            early += 1
            continue
        if first is None:
            arrival, first = now - at, change
        if change.settled:
            return Detection(arrival, first, change, early)
    return Detection(arrival, first, None, early)


@dataclass(frozen=True)
class OnlineRun:
    """Times of an online identification [s], Newton steps, the difference from the batch result, and consistency."""

    sample: Array
    solve: Array
    steps: Array
    difference: float
    consistent: bool


def online_run(stream: Stream, robot: CalibratedRobot, recording: Recording, forget: OnlineNodeOptions) -> OnlineRun:
    """Identify along a recording; processor time, so that other processes do not count."""
    options = stream.options
    online = OnlineIdentification(robot, forget, options.independent_share)
    causal = CausalFilter(stream.result.model, options)
    blocks, begun, solves, spent, steps, consistent = [], time.process_time(), [], [], [], True
    for now, *state in zip(recording.time, recording.position, recording.velocity, recording.effort, strict=True):
        block = causal.push(float(now), *state)
        if block is None:
            continue
        online.add(block)
        blocks.append(block)
        spent.append((time.process_time() - begun) / len(block))
        if len(blocks) % SOLVE_EVERY == 0:
            before = time.process_time()
            estimate = online.solve()
            solves.append(time.process_time() - before)
            steps.append(estimate.steps)
            consistent &= bool(is_consistent(robot.layout.bodies(estimate.parameters)).all())
        begun = time.process_time()
    parameters = online.solve().parameters
    return OnlineRun(
        np.array(spent),
        np.array(solves),
        np.array(steps),
        _difference(online, blocks, parameters),
        consistent,
    )


def _difference(online: OnlineIdentification, blocks: Sequence[Samples], parameters: Array) -> float:
    """Relative difference from the batch result: all samples compressed at once, another solver, no start value."""
    information = compress(online.equations, blocks)
    coordinates, regularization = online.map_problem(information)
    R, z = coordinates.normalise(*information.whitened(online.weights))
    batch = coordinates.physical(MapProblem(coordinates, online.equations.model.prior).solve(R, z, regularization).x)
    return float(np.max(np.abs(parameters - batch) / np.maximum(np.abs(batch), 1e-3 * np.abs(batch).max())))
