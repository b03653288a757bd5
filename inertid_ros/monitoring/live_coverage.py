"""Coverage of a motion while the robot moves, and advice on the next motion.

The fit is linear least squares on samples at a low rate, with the prior as additional equations. It ignores physical
consistency, outliers and delays, which the later identification handles.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array, one_thread
from inertid_ros.core.errors import InertidError
from inertid_ros.data.long_recording import Block
from inertid_ros.identification.assessment.curves import JointCoverage, MotionExtent, coverage_of_extent
from inertid_ros.identification.assessment.torque_confidence import StateTorques, sample_states
from inertid_ros.identification.information.information import Compressor, Information, information_so_far
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import RobotModel

from .streams import CausalFilter, StreamOptions

_STREAM = StreamOptions(period=0.02, cutoff_hz=5.0, block=50)  # motions of calibrations are slower than 1 Hz
_TORQUE_STATES = 100
_WEIGHT_ITERATIONS, _WEIGHT_TOLERANCE = 10, 0.02  # per call; relative change of the residual deviation that ends them
_MIN_RESIDUAL_SHARE = 1e-3  # share of a channel's torque
_TESTED_TERMS = ("rotor_inertia", "stribeck")  # kept at the prior; the identification tests them
_ADVISED_JOINTS = 2


class LiveCoverage:
    """Compute the coverage of a recording while it arrives, for a robot on a fixed base."""

    def __init__(self, model: RobotModel) -> None:
        self._model, self._equations = model, ForceEquations(model)
        self._filter, self._compressor = CausalFilter(model, _STREAM), Compressor(self._equations)
        self._state_torques = StateTorques(model, sample_states(model, _TORQUE_STATES))
        self._extent: MotionExtent | None = None
        self._deviation: Array | None = None  # ``(n,)`` residual deviation at the last computation
        self._measured = np.zeros(model.joints, dtype=bool)
        self._start_ns = 0
        self._pending: list[Array] = []  # rows of time, positions, velocities and efforts
        self._before: tuple[float, Array] | None = None

    @one_thread()
    def add(self, block: Block) -> None:
        """Take the next samples.

        Raises
        ------
        ValueError
            A joint of the model is missing in the samples.
        """
        if not len(block):
            return
        names = self._model.recorded_joints.urdf_names(block.joint_names, "joints")
        columns = [names.index(joint) for joint in self._model.joint_names]
        position, effort = block.channels["position"], block.channels["effort"]
        self._measured |= np.isfinite(effort[:, columns]).any(axis=0)
        self._start_ns = self._start_ns or int(block.stamps_ns[0])
        time = 1e-9 * (block.stamps_ns - self._start_ns).astype(float)
        velocity = block.channels.get("velocity", np.full_like(position, np.nan))
        values = (position, velocity, np.nan_to_num(effort))
        self._pending.append(np.column_stack([time, *(channel[:, columns] for channel in values)]))
        if time[-1] - self._pending[0][0, 0] > _STREAM.period:
            self._average()

    def _average(self) -> None:
        rows = np.concatenate(self._pending)
        period = np.floor(rows[:, 0] / _STREAM.period)
        complete = int(np.argmax(period == period[-1]))
        starts = np.flatnonzero(np.diff(period[:complete], prepend=-1.0))
        counts = np.diff(starts, append=complete)
        self._pending = [rows[complete:]]
        for mean in np.add.reduceat(rows[:complete], starts, axis=0) / counts[:, None]:
            time, (position, velocity, effort) = float(mean[0]), np.split(mean[1:], 3)
            if np.isnan(velocity).any():
                velocity = self._speed(time, position)
            self._before = time, position
            if (samples := self._filter.push(time, position, velocity, effort)) is not None:
                self._compressor.add(samples)
                extent = MotionExtent.from_samples(self._model, samples)
                self._extent = extent if self._extent is None else self._extent | extent

    @one_thread()
    def coverage(self) -> tuple[JointCoverage, ...]:
        """Coverage of every joint so far, with advice; empty before the first motion."""
        if self._extent is None or not self._compressor.counts.any():
            return ()
        parameters, covariance = self._fit(information_so_far(self._equations, self._compressor))
        confidence = self._state_torques.confidence(parameters, covariance)
        return coverage_of_extent(self._model, self._extent, confidence)

    def _speed(self, time: float, position: Array) -> Array:
        """Difference quotient of positions, for robots without measured velocity."""
        if self._before is None or time <= self._before[0]:
            return np.zeros(len(position))
        return (position - self._before[1]) / (time - self._before[0])

    def _fit(self, information: Information) -> tuple[Array, Array]:
        coordinates = priors.prior_coordinates(self._model, information)
        root, prior = priors.prior_covariance_root(coordinates, priors.TYPICAL_PRIOR_SPREAD), self._model.prior
        for term in set(_TESTED_TERMS).intersection(self._model.layout.drive_terms):
            root[self._model.layout.drive(term)] = 0.0
        grams = [channel.r_factor.T @ channel.r_factor for channel in information.channels]
        whole = np.zeros((len(prior) + 1, len(prior) + 1))
        places = [np.ix_(columns, columns) for columns in (np.append(c.columns, -1) for c in information.channels)]
        least = np.maximum(_MIN_RESIDUAL_SHARE * information.rms_measured, 1e-150)  # its square does not underflow
        deviation = np.maximum(information.deviation(prior) if self._deviation is None else self._deviation, least)
        for _ in range(_WEIGHT_ITERATIONS):
            whole[:] = 0.0
            weights = self._measured * _STREAM.independent_share / deviation**2
            for place, gram, weight in zip(places, grams, weights, strict=True):
                whole[place] += weight * gram
            normal, right = whole[:-1, :-1], whole[:-1, -1]
            inverse = np.linalg.inv(np.eye(len(prior)) + root.T @ normal @ root)
            parameters = prior + root @ (inverse @ (root.T @ (right - normal @ prior)))
            self._deviation, before = np.maximum(information.deviation(parameters), least), deviation
            deviation = self._deviation
            if np.abs(deviation / before - 1).max() < _WEIGHT_TOLERANCE:
                break
        return parameters, root @ inverse @ root.T


def still_needed(coverage: Sequence[JointCoverage]) -> str:
    """Return a line of advice for the joints with the least certain torque; empty if more motion brings no gain."""
    advised = sorted((joint for joint in coverage if joint.advice), key=lambda joint: -joint.torque_deviation)
    return "; ".join(f"{joint.joint}: {joint.advice}" for joint in advised[:_ADVISED_JOINTS])


class RecordingCoverage:
    """Coverage of the newest recording, for the status message of the identifier node."""

    def __init__(self) -> None:
        self.joints: tuple[JointCoverage, ...] = ()  # at the last computation
        self._name, self._has_news = "", False
        self._live: LiveCoverage | None = None

    def prepare(self, model: RobotModel) -> None:
        """Load libraries and models before the robot moves; this takes a second of processor time."""
        if not model.free:
            LiveCoverage(model)

    def add(self, model: RobotModel | None, name: str, sequence: int, block: Block) -> None:
        """Take the next samples; a new name, or sequence 0, begins a new recording."""
        self._has_news = True
        if name != self._name or sequence == 0:
            self._name, self.joints = name, ()
            self._live = LiveCoverage(model) if model is not None and not model.free else None
        if self._live is not None:
            try:
                self._live.add(block)
            except (InertidError, ValueError):  # a recording of other joints; the identification reports this error
                self._live = None

    def update(self) -> None:
        """Compute the coverage if there are new samples; this takes a few milliseconds."""
        has_news, self._has_news = self._has_news, False
        if self._live is not None and has_news:
            try:
                self.joints = self._live.coverage()
            except (InertidError, ValueError, np.linalg.LinAlgError):
                self._live, self.joints = None, ()

    def fill(self, status: Any) -> None:
        """Set the fields of an ``IdentifierStatus``."""
        status.recording = self._name
        status.joint_names = [coverage.joint for coverage in self.joints]
        status.torque_deviation = [coverage.torque_deviation for coverage in self.joints]
        status.still_needed = still_needed(self.joints)
