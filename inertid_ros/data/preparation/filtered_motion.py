"""Filtered motion: every channel of a piece of a recording through the same low-pass, and its derivatives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.data.filtering.filter_settings import away_from_edges, hardly_interpolated
from inertid_ros.data.filtering.filters import derivatives, low_pass
from inertid_ros.data.filtering.resampling import Segment
from inertid_ros.robot.model import RobotModel

from .free_base import base_motion, imu_placement

_CHANNELS = ("time", "q", "v", "a", "effort", "effort_measured", "usable")
WRENCH_PREFIX = "wrench/"  # of the channels that hold wrenches


@dataclass(frozen=True)
class FilteredMotion:
    """Filtered, evenly spaced motion and forces.

    Attributes
    ----------
    time : ndarray, shape (N,)
        Time [s].
    q, v, a : ndarray, shape (N, nq), (N, nv), (N, nv)
        Position, velocity and acceleration in the model's order.
    effort : ndarray, shape (N, n)
        Joint torque or force [N m or N].
    effort_measured : ndarray of bool, shape (N, n)
        False where the filter mixes in effort that was interpolated.
    usable : ndarray of bool, shape (N,)
        False at an edge, where the filter settles, and where it mixes in motion that was interpolated.
    wrenches : mapping of str to ndarray, shape (N, 6)
        Contact to force [N] and torque [N m].
    """

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    effort_measured: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    wrenches: Mapping[str, Array]

    def select(self, rows: slice | NDArray[np.bool_]) -> "FilteredMotion":
        """Some of the samples."""
        return replace(
            self,
            **{key: getattr(self, key)[rows] for key in _CHANNELS},
            wrenches={name: wrench[rows] for name, wrench in self.wrenches.items()},
        )

    @classmethod
    def concatenate(cls, pieces: Sequence["FilteredMotion"]) -> "FilteredMotion":
        """Pieces one after the other."""
        return cls(
            **{key: np.concatenate([getattr(piece, key) for piece in pieces]) for key in _CHANNELS},
            wrenches={name: np.concatenate([piece.wrenches[name] for piece in pieces]) for name in pieces[0].wrenches},
        )


def filter_motion(
    name: str, segment: Segment, cutoff: float, model: RobotModel, options: PrepareOptions
) -> FilteredMotion:
    """Motion and forces of one piece, low-passed without phase.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    segment : Segment
        Evenly spaced channels of the piece.
    cutoff : float
        Cutoff [Hz].
    model : RobotModel
        The robot.
    options : PrepareOptions
        Order of the filter, sources of motion.

    Raises
    ------
    RecordingError
        The robot lacks the frame of the inertial measurement unit, or the base's channels contradict each other.
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
    if model.free:
        imu = imu_placement(model, options.base.imu_frame, name)
        gravity = np.array(model.options.gravity)
        base = base_motion(name, smooth, segment.period, options.base.motion_from, imu, gravity)
        q, v, a = (np.hstack(pair) for pair in zip(base, (q, v, a), strict=True))
    wrenches = {contact.name: smooth[WRENCH_PREFIX + contact.name] for contact in model.options.contacts}
    usable = away_from_edges(segment, cutoff, options.edge_periods)
    usable &= hardly_interpolated(segment.bridged[:, None], segment.period, cutoff, options.filter_order)[:, 0]
    known = {
        channel: hardly_interpolated(flags, segment.period, cutoff, options.filter_order)
        for channel, flags in segment.replaced.items()
    }
    effort_measured = known.pop("effort")
    for flags in known.values():
        usable &= flags.all(axis=1)
    return FilteredMotion(segment.time, q, v, a, smooth["effort"], effort_measured, usable, wrenches)
