"""Speeds of Stribeck friction, the only nonlinear drive parameter: an outer loop around least squares."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import r_factor
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Channel, compress
from inertid_ros.regressors.equations import Equations, equations_of

SLOWEST, FASTEST = 0.005, 2.0  # rad/s or m/s; below is stiction, above viscous friction
_CANDIDATES = 14
_SIGNIFICANT = 9.0  # variances of the residual that a speed must explain more than the given one: three deviations


def with_fitted_stribeck(equations: Equations, recordings: Sequence[Samples]) -> Equations:
    """The equations of the same robot with the speed per joint at which least squares explains most.

    Each joint's torque is fitted by itself with all that it depends on, at speeds from :data:`SLOWEST` to
    :data:`FASTEST`; between the best and its neighbours the speed is that of a parabola. A joint keeps its speed where
    no other explains more than chance would, or where friction would have to grow with speed.

    Raises
    ------
    IdentificationError
        The robot has no Stribeck term, or the equations no joints.
    """
    model = equations.model
    if "stribeck" not in model.layout.drive_terms or not len(range(equations.count)[equations.joint_channels]):
        raise IdentificationError(
            "identify.fit_stribeck_speed: there is no Stribeck friction in these equations; add stribeck to"
            " robot.drive_terms or leave it off"
        )
    speeds = np.geomspace(SLOWEST, FASTEST, _CANDIDATES)
    given = model.layout.stribeck_speed
    errors = np.array([_errors(equations, recordings, np.full(model.joints, speed)) for speed in speeds])
    before = _errors(equations, recordings, given)
    counts = np.asarray(sum(samples.mask.sum(axis=0) for samples in recordings))[equations.joint_channels]
    best = given.copy()
    for joint in range(model.joints):
        column = errors[:, joint]
        least = int(np.argmin(column))
        if before[joint] - column[least] > _SIGNIFICANT * column[least] / max(counts[joint], 1):
            best[joint] = _refined(np.log(speeds), column, least)
    return equations_of(model.with_stribeck_speeds(best), equations.equation_type)


def _errors(equations: Equations, recordings: Sequence[Samples], speeds: Array) -> Array:
    """``(n,)`` squared error of every joint's own least squares, with friction that does not grow with speed."""
    with_speeds = equations_of(equations.model.with_stribeck_speeds(speeds), equations.equation_type)
    information = compress(with_speeds, recordings)
    columns = range(with_speeds.model.layout.size)[with_speeds.model.layout.drive("stribeck")]
    channels = information.channels[with_speeds.joint_channels]
    return np.array([_error(channel, column) for channel, column in zip(channels, columns, strict=True)])


def _error(channel: Channel, column: int) -> float:
    """Squared error of least squares over one channel; without ``column`` where its parameter would be negative."""
    position = np.flatnonzero(channel.columns == column)
    order = np.concatenate([np.flatnonzero(channel.columns != column), position, [len(channel.columns)]])
    R = r_factor(channel.r_factor[:, order])
    size = np.linalg.norm(R[:-1, :-1], axis=0)
    scaled = R[:, :-1] / np.where(size > 0, size, 1.0)
    fit, *_ = np.linalg.lstsq(scaled, R[:, -1], rcond=1e-9)
    if len(position) and fit[-1] < 0:
        scaled = scaled[:, :-1]
        fit, *_ = np.linalg.lstsq(scaled, R[:, -1], rcond=1e-9)
    return float(np.sum((scaled @ fit - R[:, -1]) ** 2))


def _refined(log_speeds: Array, errors: Array, least: int) -> float:
    """Speed at the bottom of the parabola through the best and its neighbours."""
    if least in (0, len(errors) - 1):
        return float(np.exp(log_speeds[least]))
    low, middle, high = errors[least - 1 : least + 2]
    shift = 0.5 * (low - high) / max(low - 2 * middle + high, 1e-300)
    return float(np.exp(log_speeds[least] + np.clip(shift, -1, 1) * (log_speeds[1] - log_speeds[0])))
