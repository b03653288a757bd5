"""Checks of data before anything is fitted to it."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import column_counts
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations

from .information import Channel, Information, compress

_SCALE = 1e-3  # of the momentum that the prior predicts for joints and base: less from the wheels sets no scale
_EXCITED = 1e-9  # of the largest singular value; smaller ones are directions that motion does not excite

_log = logging.getLogger(__name__)


def checked_data(
    equations: Equations, data: Sequence[Samples] | Information, task: str
) -> tuple[tuple[Samples, ...], Information]:
    """Recordings, none where only information is given, and their information, which is checked.

    Parameters
    ----------
    task : str
        What they are for, for the message.

    Raises
    ------
    IdentificationError
        No recordings, or what :func:`check_usable` refuses.
    """
    if isinstance(data, Information):
        check_usable(equations, data, ["information"])
        return (), data
    recordings = tuple(data)
    if not recordings:
        raise IdentificationError(f"{task}: no recordings given; give at least one")
    information = compress(equations, recordings)
    measured = np.any([column_counts(samples.valid | samples.mask) for samples in recordings], axis=0)
    check_usable(equations, information, [samples.name for samples in recordings], ~measured)
    return recordings, information


def check_usable(
    equations: Equations,
    information: Information,
    recordings: Sequence[str],
    unmeasured: NDArray[np.bool_] | None = None,
) -> None:
    """Check that every channel has more samples than parameters, and that something was measured.

    Where channels are optional, a channel without samples is passed over, as long as there are others; so is one that
    was not measured.

    Parameters
    ----------
    recordings : sequence of str
        Names, for the message.
    unmeasured : ndarray of bool, shape (c,), optional
        Channels that no recording measures.

    Raises
    ------
    IdentificationError
        A channel has no usable sample or no more than its parameters fit exactly, or all effort is zero.
    """
    names = ", ".join(recordings)
    empty = [name for name, count in zip(information.names, information.counts, strict=True) if count == 0]
    counts = _counts_of_equal_columns(information)
    passed_over = np.full(len(counts), equations.optional) if unmeasured is None else unmeasured | equations.optional
    channels = zip(information.names, information.channels, counts, passed_over, strict=True)
    for name, channel, count, optional in channels:
        what = f"joint '{name}'" if name in information.layout.joints else f"'{name}'"
        if channel.count == 0:
            if optional and len(empty) < len(information.names):
                continue
            raise IdentificationError(
                f"{names}: no usable sample of {what}; did it move? record more motion, or hold it with"
                " robot.locked_joints (--lock JOINT=POSITION)"
            )
        if count <= _unknowns(channel):
            raise IdentificationError(
                f"{names}: {count} usable samples of {what}, and as many parameters to fit to them;"
                " record for some seconds at least"
            )
    if empty:
        _log.info("%s: nothing was measured of %s; the rest is fitted", names, ", ".join(empty))
    if information.noise is not None:
        level = information.rms_error(equations.model.prior).max()
        if information.rms_measured.max() <= _SCALE * level:
            raise IdentificationError(
                f"{names}: the reaction wheels do not turn, or hardly, so that momentum has no scale and all parameters"
                " are determined up to one common factor; spin the wheels"
            )
    if not information.rms_measured.any():
        raise IdentificationError(f"{names}: effort is zero throughout; the robot does not report torque")


def check_effort_varies(equations: Equations, recordings: Sequence[Samples]) -> None:
    """Check that no moving joint reports a constant effort.

    Raises
    ------
    IdentificationError
        A joint reports a constant effort; the message names the joint and the value.
    """
    model = equations.model
    first = model.velocities - model.joints
    for joint, channel in enumerate(range(equations.count)[equations.joint_channels]):
        joint_name = model.joint_names[joint]
        effort = np.concatenate([samples.tau[samples.mask[:, channel], channel] for samples in recordings])
        if len(effort) < 2 or not 0 < np.abs(effort).max() >= 1e9 * np.ptp(effort):
            continue
        if any(samples.v[samples.mask[:, channel], first + joint].any() for samples in recordings):
            names = ", ".join(samples.name for samples in recordings)
            raise IdentificationError(
                f"{names}: effort of joint '{joint_name}' is {effort[0]:.6g} throughout while it moves; its driver does"
                " not report torque: correct it, or lock the joint (robot.locked_joints)"
            )


def _counts_of_equal_columns(information: Information) -> list[int]:
    """Equations that each channel's parameters have: its own, and those of channels that depend on the very same."""
    alike = [channel.columns.tobytes() for channel in information.channels]
    return [
        sum(other.count for key, other in zip(alike, information.channels, strict=True) if key == own) for own in alike
    ]


def _unknowns(channel: Channel) -> int:
    """Number of directions of a channel's parameters that its data excites, with columns at equal length."""
    R = channel.r_factor[:-1, :-1]
    size = np.linalg.norm(R, axis=0)
    values = np.linalg.svd(R[:, size > 0] / size[size > 0], compute_uv=False)
    return int((values > _EXCITED * values.max(initial=0.0)).sum())
