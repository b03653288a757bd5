"""Compression of samples into square-root information at the speed of the caches, whatever their number."""

from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag, lapack

from ..data.samples import Samples
from ..regressors.drive import Motion, channel_drive_columns, drive_rows
from ..regressors.joint_torque import BATCH, TorqueRegressor, carried_bodies
from ..regressors.regrouping import regroup
from ..regressors.rotors import RotorRegressor, channel_rotor_columns
from ..robot.model import RobotModel
from ..robot.parameters import Array

_WORKSPACE = 2**22  # numbers in the array that holds one batch of all channels, 32 MB, where the robot is not huge
_LEAST_BATCH = 128
_PANEL = 8  # columns that LAPACK reduces before it updates the others


class Compressor:
    """Takes samples and keeps one triangle per channel.

    Each channel (a joint's torque) has an array of its own whose first rows are the triangle so far. The regressor
    is written below it, in the order that LAPACK reads, and QR brings the triangle back to the top: no sample is
    copied on the way. Of the ten parameters of a body only those that its parent cannot stand for are written;
    the others are exact combinations of these (:mod:`inertid_ros.regressors.regrouping`) and return with
    :meth:`triangles`.
    """

    def __init__(self, model: RobotModel) -> None:
        layout, grouping = model.layout, regroup(model.tree)
        self._layout = layout
        self._regressor = TorqueRegressor(model, grouping.columns)
        self._rotors = RotorRegressor(model) if layout.rotors else None
        self.counts = np.zeros(model.joints, dtype=int)
        self._channels = []
        self._expansions = []
        self._rotor_columns = []
        for joint, bodies in enumerate(carried_bodies(model)):
            first, last = self._regressor.columns[bodies[0]].start, self._regressor.columns[bodies[-1]].stop
            felt = channel_rotor_columns(model, joint)
            self._rotor_columns.append(felt - layout.body_size)
            drives = len(felt) + len(channel_drive_columns(layout, joint))
            self._channels.append(slice(first, last + drives + 1))
            columns = np.concatenate([np.arange(layout.size)[layout.body(body)] for body in bodies])
            self._expansions.append(block_diag(grouping.matrix[first:last, columns], np.eye(drives + 1)))
        self._top = max(channel.stop - channel.start for channel in self._channels)
        width = max(channel.stop for channel in self._channels)
        rows = _WORKSPACE // (model.joints * width) - self._top
        self._batch = int(np.clip(rows, _LEAST_BATCH, BATCH))
        self._work = np.zeros((model.joints, width, self._top + self._batch))

    def add(self, samples: Samples) -> None:
        """Take the unmasked equations of a recording."""
        for start in range(0, len(samples), self._batch):
            self._add(samples, slice(start, min(start + self._batch, len(samples))))

    def _add(self, samples: Samples, rows: slice) -> None:
        motion = Motion(*map(np.asfortranarray, Motion.of(self._layout, samples, rows)))
        count, mask = len(motion.q), samples.mask[rows]
        new = self._work[..., self._top : self._top + count]
        self._work[..., self._top + count :] = 0.0
        q, v, a = motion.q.T, motion.v.T, motion.a.T
        self._regressor.write(q, v, a, new)
        rotors = self._rotors.of(q, v, a) if self._rotors else None
        for joint, (channel, drives) in enumerate(zip(self._channels, drive_rows(self._layout, motion), strict=True)):
            end = channel.stop - 1
            first_drive = end - len(drives)
            for column, drive in enumerate(drives, start=first_drive):
                new[joint, column] = drive
            if rotors is not None:
                felt = self._rotor_columns[joint]
                new[joint, first_drive - len(felt) : first_drive] = rotors[joint, felt]
            new[joint, end] = samples.tau[rows, joint]
            if not mask[:, joint].all():
                new[joint, channel, ~mask[:, joint]] = 0.0
        self.counts += mask.sum(axis=0)
        for joint, channel in enumerate(self._channels):
            reduce_rows(self._work[joint, channel], self._top)

    def triangles(self) -> list[Array]:
        """For each channel, ``R (r, c + 1)`` with ``R^T R = [A b]^T [A b]``, ``A x[columns] = b`` its equations."""
        size = [channel.stop - channel.start for channel in self._channels]
        return [
            self._work[joint, channel, :rows].T @ expansion
            for joint, (channel, rows, expansion) in enumerate(zip(self._channels, size, self._expansions, strict=True))
        ]


def reduce_rows(work: Array, top: int) -> None:
    """QR in place of ``work.T``, ``work (c, top + k)``: the triangle goes to the first c rows; the others up to ``top``
    become zero, and those below are left for new ones."""
    factored, *_ = lapack.dgeqrt(min(_PANEL, len(work)), work.T, overwrite_a=1)
    np.multiply(factored.T[:, :top], _lower(len(work), top), out=work[:, :top])


@lru_cache(maxsize=256)
def _lower(rows: int, columns: int) -> Array:
    """Ones on and below the diagonal."""
    return np.tri(rows, columns)
