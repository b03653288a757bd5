"""What data must hold before anything is fitted to it."""

from collections.abc import Sequence

import numpy as np

from ..data.samples import Samples
from ..errors import IdentificationError
from .information import Channel, Information

_SEEN = 1e-9  # of the largest pivot; what motion shows of a channel's parameters


def check_usable(information: Information, recordings: Sequence[str]) -> None:
    """Check that every joint has samples enough to tell noise from parameters, and torque was measured.

    Parameters
    ----------
    recordings: names, for the message.

    Raises
    ------
    IdentificationError: a joint has no usable sample or no more than its parameters fit exactly, or all effort is zero.
    """
    names = ", ".join(recordings)
    for joint, channel in zip(information.layout.joints, information.channels, strict=True):
        if channel.count == 0:
            raise IdentificationError(f"{names}: no usable sample of joint '{joint}'; did it move? record more motion")
        if channel.count <= _unknowns(channel):
            raise IdentificationError(
                f"{names}: {channel.count} usable samples of joint '{joint}', and as many parameters to fit to them;"
                " record for some seconds at least"
            )
    if not information.rms_measured.any():
        raise IdentificationError(f"{names}: effort is zero throughout; the robot does not report torque")


def check_effort_varies(joint_names: Sequence[str], recordings: Sequence[Samples]) -> None:
    """Check that no joint that moves reports one and the same effort all the time.

    Raises
    ------
    IdentificationError: naming the joint and the value.
    """
    for joint, joint_name in enumerate(joint_names):
        effort = np.concatenate([samples.tau[samples.mask[:, joint], joint] for samples in recordings])
        moves = any(samples.v[samples.mask[:, joint], joint].any() for samples in recordings)
        if len(effort) > 1 and moves and 0 < np.abs(effort).max() >= 1e9 * np.ptp(effort):
            names = ", ".join(samples.name for samples in recordings)
            raise IdentificationError(
                f"{names}: effort of joint '{joint_name}' is {effort[0]:.6g} throughout while it moves; its driver does"
                " not report torque: mend it, or lock the joint (robot.locked_joints)"
            )


def _unknowns(channel: Channel) -> int:
    """Directions of a channel's parameters that its data shows at all, columns taken at equal size."""
    R = channel.triangle[:-1, :-1]
    size = np.linalg.norm(R, axis=0)
    values = np.linalg.svd(R[:, size > 0] / size[size > 0], compute_uv=False)
    return int((values > _SEEN * values.max(initial=0.0)).sum())
