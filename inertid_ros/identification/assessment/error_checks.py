"""Checks of torque errors of a result, over all channels and channel by channel."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding, Severity

_USELESS = 1.0  # error over torque of all channels: no model at all does as well


@dataclass(frozen=True)
class ErrorComparison:
    """Torque errors of a result beside those of the URDF as given, on the same recordings.

    Attributes
    ----------
    channels : tuple of str
        Joints, or other channels of the equations.
    torque, calibrated : ndarray, shape (c,)
        Root mean square of the measurement, and of the result's error [N m or N].
    given : ndarray or None, shape (c,)
        Of the error of the URDF; None where there is none to compare with.
    relative : tuple[float, float | None]
        Error over torque of all channels together: of the result, of the URDF.
    """

    channels: tuple[str, ...]
    torque: Array
    calibrated: Array
    given: Array | None
    relative: tuple[float, float | None]


def check_errors(errors: ErrorComparison) -> tuple[Finding, ...]:
    """Findings of all channels together, then channel by channel."""
    return (*_overall(errors), *_worse_channels(errors))


def _overall(errors: ErrorComparison) -> Iterator[Finding]:
    own, given = errors.relative
    if not own < _USELESS:
        yield Finding(
            "worse_than_nothing",
            Severity.REJECT,
            f"the torque error is {100 * own:.2f} % of the torque itself, worse than no model at all",
            "check sign and units of effort and position",
        )
    if given is not None and not own < given:
        yield Finding(
            "worse_than_urdf",
            Severity.REJECT,
            f"the torque error over all joints is {100 * own:.2f} % against {100 * given:.2f} % of the URDF as given",
            "record a richer motion, and check that these recordings are of this robot",
        )


def _worse_channels(errors: ErrorComparison) -> Iterator[Finding]:
    if errors.given is None:
        return
    scale = np.maximum(errors.torque, 0.01 * errors.torque.max())
    excess = (errors.calibrated - errors.given) / scale
    for channel, name in enumerate(errors.channels):
        if excess[channel] <= 0 or errors.torque[channel] == 0:
            continue
        yield Finding(
            "worse_than_urdf",
            Severity.CARE if excess[channel] > 0.05 else Severity.NOTICE,
            f"{name}: error {errors.calibrated[channel]:.3g} against {errors.given[channel]:.3g} of the URDF as given,"
            f" of a torque of {errors.torque[channel]:.3g} N m or N (RMS)",
            "check the effort of this joint, and record a motion that moves it more",
            (name,),
        )
