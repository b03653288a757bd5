"""Filtered motion: every channel of a piece of a recording through the same low-pass, and its derivatives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel

from .filters import derivatives, low_pass
from .free_base import base_motion, imu_placement
from .resampling import Segment

PREFIX = "wrench/"  # of the channels that hold wrenches


@dataclass(frozen=True)
class Filtered:
    """Filtered, evenly spaced motion and forces.

    Attributes
    ----------
    time: ``(N,)`` s.
    q, v, a: ``(N, nq)``, ``(N, nv)``, ``(N, nv)`` as the model has them.
    effort: ``(N, n)``.
    usable: ``(N,)`` bool, not at an edge where the filter settles.
    wrenches: contact to ``(N, 6)``.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    usable: NDArray[np.bool_]
    wrenches: Mapping[str, Array]

    def rows(self, rows: slice | NDArray[np.bool_]) -> "Filtered":
        """Some of the samples."""
        return Filtered(
            self.time[rows], self.q[rows], self.v[rows], self.a[rows], self.effort[rows], self.usable[rows],
            {name: wrench[rows] for name, wrench in self.wrenches.items()},
        )


def joined(pieces: Sequence[Filtered]) -> Filtered:
    """One after the other."""

    def whole(key: str) -> Array:
        return np.concatenate([getattr(piece, key) for piece in pieces])

    return Filtered(
        whole("time"), whole("q"), whole("v"), whole("a"), whole("effort"),
        np.concatenate([piece.usable for piece in pieces]),
        {name: np.concatenate([piece.wrenches[name] for piece in pieces]) for name in pieces[0].wrenches},
    )


def filtered(name: str, segment: Segment, cutoff: float, model: RobotModel, options: PrepareOptions) -> Filtered:
    """A piece of the recording ``name``, low-passed without phase at ``cutoff`` [Hz].

    Raises
    ------
    RecordingError: the frame of the inertial measurement unit is none, or the base's channels contradict each other.
    """
    smooth = {
        channel: low_pass(values, segment.period, cutoff, options.filter_order)
        for channel, values in segment.channels.items()
    }
    q = smooth["position"]
    if options.motion_from == "position":
        v, a = derivatives(q, segment.period, (1, 2))
    elif options.motion_from == "velocity":
        v = smooth["velocity"]
        (a,) = derivatives(v, segment.period, (1,))
    else:
        v, a = smooth["velocity"], smooth["acceleration"]
    edge = min(int(np.ceil(options.edge_periods / (cutoff * segment.period))), len(segment) // 3)
    usable = np.ones(len(q), dtype=bool)
    usable[:edge] = usable[len(q) - edge :] = False
    if model.free:
        imu = imu_placement(model, options.base.imu_frame, name)
        gravity = np.array(model.options.gravity)
        base = base_motion(name, smooth, segment.period, options.base.motion_from, imu, gravity)
        q, v, a = (np.hstack(pair) for pair in zip(base, (q, v, a), strict=True))
    wrenches = {contact.name: smooth[PREFIX + contact.name] for contact in model.options.contacts}
    return Filtered(segment.time, q, v, a, smooth["effort"], usable, wrenches)
