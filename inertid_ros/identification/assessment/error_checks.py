"""Checks of torque errors of a result, over all channels and channel by channel.

An error of a joint is measured on the scale of that joint's own torque: a wrist that has hardly any is not held to the
torque of a shoulder. Rigid bodies and friction leave errors of many times the sensor's noise on every real robot, so
that the noise alone decides nothing: it only tells small errors that are noise from those that are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity

from .torque_scale import TorqueScale

_USELESS = 1.0  # error over torque: no model at all does as well
_UNEXPLAINED = 0.8  # error over variation of a joint's torque: R^2 below 0.36; 1 is a model of the mean alone
_HARDLY_WORSE = 0.03  # what an error adds to that of the URDF, of the torque; less is within scatter between motions
_WORSE, _MUCH_WORSE = 0.1, 0.3  # the same: 1 and 9 % of the mean square of the torque
_NOISE = 3.0  # times the sensor's noise, beyond which an error is not noise
_EXPECTED = 3.0  # times the error that the fit expects: that is, beyond its 99 % interval
_MATERIAL = 0.25  # of a joint's torque; smaller errors are no concern however unexpected or unexplained
_MINOR = 0.05  # of the largest torque of any joint; a joint with less does not make a result useless


@dataclass(frozen=True)
class ErrorComparison:
    """Torque errors of a parameter set on recordings, beside what they are measured by.

    Attributes
    ----------
    channels : tuple of str
        Joints, or other channels of the equations.
    error : ndarray, shape (c,)
        Root mean square, over all usable samples [N m or N].
    given : ndarray or None, shape (c,)
        The same of the URDF as given; None where there is none to compare with.
    relative : tuple[float, float | None]
        Error over torque of all channels together: of the parameter set, of the URDF.
    scale : TorqueScale
        Torque that the joint has: the largest of these and of other recordings, and over its range.
    noise : ndarray, shape (c,)
        Standard deviation of the sensor's noise below the cutoff; zero where it is not known.
    sliding, expected : ndarray or None, shape (c,)
        Error over the samples that a fit would use, and what is expected of it by the residual and the covariance of
        the parameters; None where these are not known.
    quantity : tuple of str
        What is measured, and its unit, see :class:`Equations`.
    """

    channels: tuple[str, ...]
    error: Array
    given: Array | None
    relative: tuple[float, float | None]
    scale: TorqueScale
    noise: Array
    sliding: Array | None = None
    expected: Array | None = None
    quantity: tuple[str, str] = ("torque", "N m or N")


def check_errors(errors: ErrorComparison) -> tuple[Finding, ...]:
    """Findings of all channels together, then channel by channel."""
    return (*_overall(errors), *_unexplained(errors), *_worse(errors), *_unexpected(errors))


def _overall(errors: ErrorComparison) -> Iterator[Finding]:
    (own, given), (quantity, _) = errors.relative, errors.quantity
    if not own < _USELESS:
        yield Finding(
            "worse_than_nothing",
            Severity.REJECT,
            f"the {quantity} error is {100 * own:.2f} % of the {quantity} itself, worse than no model at all",
            _remedy(errors, "worse_than_nothing"),
        )
    if given is not None and not own < given:
        added = float(np.sqrt(own**2 - given**2))
        yield Finding(
            "worse_than_urdf",
            Severity.CARE if added <= _HARDLY_WORSE else Severity.REJECT,
            f"the {quantity} error over all channels is {100 * own:.2f} % against {100 * given:.2f} % of the URDF as"
            " given",
            remedy_for("worse_than_urdf", "all_joints"),
        )


def _remedy(errors: ErrorComparison, cause: str) -> str:
    """The remedy of errors of torque; another one where no torque is measured."""
    return remedy_for(cause, "" if errors.quantity[0] == "torque" else "momentum")


def _unexplained(errors: ErrorComparison) -> Iterator[Finding]:
    """Channels whose torque is not explained, neither by the model nor as noise."""
    quantity, unit = errors.quantity
    remedy = _remedy(errors, "above_noise")
    for channel, name in _measured(errors):
        error, noise, scale = errors.error[channel], errors.noise[channel], errors.scale.torque[channel]
        variation = errors.scale.variation[channel]
        if error <= _UNEXPLAINED * variation or error <= _MATERIAL * scale or error <= _NOISE * noise:
            continue
        useless = error > _USELESS * variation and scale > _MINOR * errors.scale.torque.max()
        noisy = f", {error / noise:.0f} times the noise of its effort" if noise > 0 else ""
        yield Finding(
            "above_noise",
            Severity.REJECT if useless else Severity.CARE,
            f"{name}: error {error:.3g} of a {quantity} that varies by {variation:.3g} {unit} (RMS){noisy}",
            remedy,
            (name,),
        )


def _worse(errors: ErrorComparison) -> Iterator[Finding]:
    """Channels with a larger error than that of the URDF as given."""
    if errors.given is None:
        return
    quantity, unit = errors.quantity
    remedy = _remedy(errors, "worse_than_urdf")
    for channel, name in _measured(errors):
        error, given, scale = errors.error[channel], errors.given[channel], errors.scale.torque[channel]
        added = float(np.sqrt(max(error**2 - given**2, 0.0))) / scale
        if added <= _HARDLY_WORSE or error <= _NOISE * errors.noise[channel]:
            continue
        grave = added > _MUCH_WORSE and scale > _MINOR * errors.scale.torque.max()
        yield Finding(
            "worse_than_urdf",
            Severity.REJECT if grave else Severity.CARE if added > _WORSE else Severity.NOTICE,
            f"{name}: error {error:.3g} against {given:.3g} of the URDF as given, of a {quantity} of {scale:.3g} {unit}"
            " (RMS)",
            remedy,
            (name,),
        )


def _unexpected(errors: ErrorComparison) -> Iterator[Finding]:
    """Channels with a much larger error than the fit and its uncertainty make expect."""
    if errors.sliding is None or errors.expected is None:
        return
    for channel, name in _measured(errors):
        error, expected = errors.sliding[channel], errors.expected[channel]
        if error > _EXPECTED * expected and error > _MATERIAL * errors.scale.torque[channel]:
            yield Finding(
                "does_not_generalise",
                Severity.CARE,
                f"{name}: error {error:.3g} on held-out data, {error / expected:.1f} times what the fit makes expect",
                remedy_for("does_not_generalise"),
                (name,),
            )


def _measured(errors: ErrorComparison) -> Iterator[tuple[int, str]]:
    return ((channel, name) for channel, name in enumerate(errors.channels) if errors.scale.torque[channel] > 0)
