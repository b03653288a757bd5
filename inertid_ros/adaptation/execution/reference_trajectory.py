"""Whether a trajectory that somebody sends may be followed, and the way to it from where the reference is."""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.adaptation.control.tracking import Reference
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.motions.quintic import PiecewiseQuintic

MOST_POINTS = 2000  # the controller waits while a trajectory is checked
_LATEST_S = 0.2  # a trajectory that began longer ago was late, or is of another clock
_EARLIEST_S = 60.0  # one that begins later is of another clock
_JOIN_S = 0.1  # on which the reference comes to a trajectory that has begun
_SHORTEST_S = 1e-3  # of a segment
_REST = 1e-3  # rad/s or m/s; a last point that moves faster is refused


@dataclass(frozen=True)
class SentTrajectory:
    """Points of a trajectory as they came.

    Attributes
    ----------
    start : float
        When its clock begins [s].
    time : ndarray, shape (P,)
        From its start, increasing [s].
    position, velocity, acceleration : ndarray, shape (P, n)
        In the order of the joints, finite.
    """

    start: float
    time: Array
    position: Array
    velocity: Array
    acceleration: Array


def way_along(sent: SentTrajectory, here: Reference, now: float, limits: MotionLimits) -> PiecewiseQuintic:
    """Return the curve from the reference at ``now`` onto a trajectory and along it to its end.

    It begins at zero. Where the first point lies ahead, the way leads to it; a trajectory that has begun is joined a
    tenth of a second ahead. Both ways keep all limits, so that a trajectory that begins elsewhere is refused.

    Raises
    ------
    ExcitationError
        It has too many points, is of the past, does not end at rest, or the curve leaves a limit; joint, time and value
        are named.
    """
    if len(sent.time) > MOST_POINTS:
        raise ExcitationError(
            f"reference: has {len(sent.time)} points, at most {MOST_POINTS} are followed; send it in parts"
        )
    first = sent.start + sent.time[0] - now
    if first < -_LATEST_S:
        raise ExcitationError(
            f"reference: began {-first:.3f} s ago; check the clocks and use_sim_time, or send it earlier"
        )
    if first > _EARLIEST_S:
        raise ExcitationError(f"reference: begins in {first:.0f} s only; check the clocks and use_sim_time")
    if np.abs(sent.velocity[-1]).max() > _REST:
        joint = limits.joint_names[int(np.argmax(np.abs(sent.velocity[-1])))]
        raise ExcitationError(f"reference: joint '{joint}' moves at the last point; end at rest")
    curve = _joined(_on_clock(sent, now), here)
    _check(curve, limits, here)
    return curve


def _on_clock(sent: SentTrajectory, now: float) -> PiecewiseQuintic:
    """Knots of a trajectory that ends at rest, ``now`` being zero."""
    velocity, acceleration = np.array(sent.velocity), np.array(sent.acceleration)
    velocity[-1] = acceleration[-1] = 0.0
    return PiecewiseQuintic(sent.time + sent.start - now, sent.position, velocity, acceleration)


def _joined(sent: PiecewiseQuintic, here: Reference) -> PiecewiseQuintic:
    """The curve that begins with the reference at zero."""
    time, *values = sent.time, sent.position, sent.velocity, sent.acceleration
    if time[0] < _JOIN_S:
        later = time > _JOIN_S + _SHORTEST_S
        if later.any() and len(time) > 1:
            joined = sent.sample(np.array([_JOIN_S]))
            values = [np.vstack([at, each[later]]) for at, each in zip(joined, values, strict=True)]
            time = np.append(_JOIN_S, time[later])
        else:  # all of it is passed by then: its end is what is left
            time, values = np.array([max(_JOIN_S, time[-1])]), [each[-1:] for each in values]
    began = (here.position, here.velocity, here.acceleration)
    return PiecewiseQuintic(
        np.append(0.0, time), *(np.vstack([at, each]) for at, each in zip(began, values, strict=True))
    )


def _check(curve: PiecewiseQuintic, limits: MotionLimits, here: Reference) -> None:
    """As :func:`check_curve`, but only where the bounds of a segment leave open whether it keeps the limits."""
    lower, upper = np.minimum(limits.lower, here.position), np.maximum(limits.upper, here.position)
    limits = replace(limits, lower=lower, upper=upper)  # an arm that stands outside may come back in
    bounds = ((lower, upper), (-limits.velocity, limits.velocity), (-limits.acceleration, limits.acceleration))
    doubtful = np.zeros(len(curve.time) - 1, dtype=bool)
    for order, (least, most) in enumerate(bounds):
        points = curve.control_points(order)
        doubtful |= ((points < least) | (points > most)).any(axis=(1, 2))
    for segment in np.flatnonzero(doubtful):
        knots = slice(segment, segment + 2)
        part = (curve.time[knots], curve.position[knots], curve.velocity[knots], curve.acceleration[knots])
        try:
            check_curve(PiecewiseQuintic(*part), limits)
        except ExcitationError as error:
            way = "on the way to it " if segment == 0 else ""
            raise ExcitationError(f"reference: {way}{error}") from None
