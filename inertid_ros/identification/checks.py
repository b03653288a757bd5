"""What data must hold before anything is fitted to it."""

from collections.abc import Sequence

from ..errors import IdentificationError
from .information import Information


def check_usable(information: Information, recordings: Sequence[str]) -> None:
    """Check that every joint has samples and torque was measured.

    Parameters
    ----------
    recordings: names, for the message.

    Raises
    ------
    IdentificationError: a joint has no usable sample, or all effort is zero.
    """
    names = ", ".join(recordings)
    empty = [joint for joint, count in zip(information.layout.joints, information.counts, strict=True) if count == 0]
    if empty:
        raise IdentificationError(f"{names}: no usable sample of joint '{empty[0]}'; did it move? record more motion")
    if not information.rms_measured.any():
        raise IdentificationError(f"{names}: effort is zero throughout; the robot does not report torque")
