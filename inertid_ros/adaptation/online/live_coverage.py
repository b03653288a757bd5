"""What a motion that is still going on has determined so far, and what to move next.

A calibration shows it while the robot moves. It is a linear fit with the prior as further equations, to samples at a
low rate; bodies that are physically consistent, outliers and delays are left to the identification that follows.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.blocks import Block
from inertid_ros.identification.assessment.torque_confidence import confidence_by_covariance, sample_states
from inertid_ros.identification.details.motion_coverage import JointCoverage, motion_coverage
from inertid_ros.identification.information.block_scores import band_fraction
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.prior.coordinates import (
    TYPICAL_PRIOR_SPREAD,
    prior_coordinates,
    prior_covariance_root,
)
from inertid_ros.regressors.force_equations import ForceEquations
from inertid_ros.robot.model import RobotModel

from .causal_filter import CausalFilter, StreamOptions

_STREAM = StreamOptions(period=0.02, cutoff_hz=5.0, block=25)  # motions of calibrations are slower than 1 Hz
_STATES = 100
_ROUNDS, _SETTLED = 10, 0.02  # of weights by residuals, which go on at the next call; their relative change
_MOST_BLOCKS = 1200  # whose motion is looked at, ten minutes; of a longer one parts of it
_LEAST = 1e-3  # of a channel's torque: its residuals are at least as large
_TESTED = ("rotor_inertia", "stribeck")  # drive terms that are part of a result only where a test finds them
_NAMED = 2  # joints that are named


class LiveCoverage:
    """Takes the samples of a recording as they come.

    Parameters
    ----------
    model : RobotModel
        Robot on a fixed base.
    """

    def __init__(self, model: RobotModel) -> None:
        self._model, self._equations = model, ForceEquations(model)
        self._filter, self._states = CausalFilter(model, _STREAM), sample_states(model, _STATES)
        self._information: Information | None = None
        self._blocks: list[Samples] = []
        self._deviation: Array | None = None  # ``(n,)`` of residuals, when last worked out
        self._measured = np.zeros(model.joints, dtype=bool)
        self._start_ns = 0
        self._pending: list[Array] = []  # rows of time, positions, velocities and efforts
        self._before: tuple[float, Array] | None = None

    def add(self, block: Block) -> None:
        """Take the next samples.

        Raises
        ------
        ValueError
            A joint of the model is not among them.
        """
        if not len(block):
            return
        names = self._model.recorded_joints.own(block.joint_names, "joints")
        columns = [names.index(joint) for joint in self._model.joint_names]
        self._measured |= np.isfinite(block.effort[:, columns]).any(axis=0)
        self._start_ns = self._start_ns or int(block.stamps_ns[0])
        time = 1e-9 * (block.stamps_ns - self._start_ns).astype(float)
        velocity = np.full_like(block.position, np.nan) if block.velocity is None else block.velocity
        values = (block.position, velocity, np.nan_to_num(block.effort))
        self._pending.append(np.column_stack([time, *(each[:, columns] for each in values)]))
        if time[-1] - self._pending[0][0, 0] > _STREAM.period:
            self._average()

    def _average(self) -> None:
        """Hand means of all periods that are complete to the filter."""
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
                self._take(samples)

    def joints(self) -> tuple[JointCoverage, ...]:
        """Coverage of every joint so far, with advice; empty before anything has moved."""
        if self._information is None or not self._information.counts.any():
            return ()
        parameters, covariance = self._fit(self._information)
        confidence = confidence_by_covariance(self._model, parameters, covariance, self._states)
        return motion_coverage(self._model, self._blocks, confidence)

    def _speed(self, time: float, position: Array) -> Array:
        """By the position before, where the robot reports no velocity."""
        if self._before is None or time <= self._before[0]:
            return np.zeros(len(position))
        return (position - self._before[1]) / (time - self._before[0])

    def _take(self, samples: Samples) -> None:
        own = compress(self._equations, [samples])
        self._information = own if self._information is None else self._information + own
        self._blocks.append(samples)
        if len(self._blocks) > _MOST_BLOCKS:
            self._blocks = self._blocks[::2]

    def _fit(self, information: Information) -> tuple[Array, Array]:
        """Parameters ``(p,)`` and their covariance by data and prior."""
        coordinates = prior_coordinates(self._model, information)
        root, prior = prior_covariance_root(coordinates, TYPICAL_PRIOR_SPREAD), self._model.prior
        for term in set(_TESTED).intersection(self._model.layout.drive_terms):
            root[self._model.layout.drive(term)] = 0.0
        independent = np.sqrt(band_fraction(self._blocks))
        least = np.maximum(_LEAST * information.rms_measured, 1e-300)
        deviation = np.maximum(information.deviation(prior) if self._deviation is None else self._deviation, least)
        for _ in range(_ROUNDS):
            R, z = information.whitened(self._measured * independent / deviation)
            A = R @ root
            inverse = np.linalg.inv(np.eye(len(prior)) + A.T @ A)
            parameters = prior + root @ (inverse @ (A.T @ (z - R @ prior)))
            self._deviation, before = np.maximum(information.deviation(parameters), least), deviation
            deviation = self._deviation
            if np.abs(deviation / before - 1).max() < _SETTLED:
                break
        return parameters, root @ inverse @ root.T


def still_needed(coverage: Sequence[JointCoverage]) -> str:
    """One line on what to move next, of the joints whose torque is known least; empty where nothing is to be gained."""
    advised = sorted((each for each in coverage if each.advice), key=lambda each: -each.torque_deviation)
    return "; ".join(f"{each.joint}: {each.advice}" for each in advised[:_NAMED])
