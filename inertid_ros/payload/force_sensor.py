"""Load and bias of a wrist force-torque sensor, from its wrench and its motion.

The sensor measures the wrench that holds the bodies mounted on it. The specific force of the sensor's origin
(acceleration minus gravity) is ``f``, its angular velocity ``w`` and its angular acceleration ``u``. The load has mass
``m``, first moment ``h`` and inertia ``I`` about the origin. In the sensor's axes, with biases ``b_f`` and ``b_t``,
the sensor measures

- force ``m f + u x h + w x (w x h) + b_f``,
- torque ``h x f + I u + w x I w + b_t``.

Force and torque are linear in the parameters, also if wrench and motion pass the same filter. The sensor may be
rotated relative to the axes of the recorded pose: the tilt of its mount rotates the wrench of the load before the bias
is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.spatial.transform import Rotation, Slerp

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.inertial_parameters import inertia_about_origin, mass_com_inertia
from inertid_ros.core.rotations import checked_quaternions, skew
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.estimate import NORMAL_95
from inertid_ros.robot.dynamics import WRENCH_TABLE, wrench_products

from .payload import Quantity

_MAX_ROWS = 4000  # samples of all recordings together
_MAX_VALUE = 1e6  # m, N or N m; larger values are no measurements
_MIN_DYNAMIC_RATE_HZ = 40.0  # minimum sample rate for the computation of accelerations
_CUTOFF_HZ = 5.0  # cutoff of motion and wrench, if accelerations are computed; people and arms turn tools more slowly
_REWEIGHTINGS, _MAX_STEPS = 5, 20  # updates of the weights, and steps of each fit
_MAX_MASS_DEVIATION = 0.2  # share of the mass; small rotations of the sensor do not separate its load from its bias
_MAX_INERTIA_DEVIATION = 0.2  # share of the inertia's largest element; a less certain inertia is not reported
_RIDGE_SHARE = 1e-14  # relative to unit columns
_TILTED_RAD = 0.02  # tilt of a mount; a smaller tilt gives no notice
_BODY, _INERTIA, _BIAS, _TILT = slice(0, 4), slice(4, 10), slice(10, 16), slice(16, 19)


@dataclass(frozen=True)
class SensorMotion:
    """Wrench ``(N, 6)`` of a sensor [N, N m], and its regressor ``(N, 6, 10)`` for the parameters of a body.

    ``dynamic`` is True if accelerations are known; else every sample is treated as at rest.
    """

    wrench: Array
    regressor: Array
    dynamic: bool

    def __len__(self) -> int:
        return len(self.wrench)


@dataclass(frozen=True)
class ForceSensorLoad:
    """Load and bias of a sensor, with standard deviations.

    Attributes
    ----------
    mass : [kg]
    com : (3,), centre of mass in the axes of the sensor [m].
    inertia : (3, 3), about the centre of mass [kg m^2]; None if the motion does not determine it.
    bias : (6,), wrench of the sensor without load [N, N m].
    tilt : (3,), rotation vector of the sensor relative to the axes of its recorded pose [rad].
    deviations : standard deviations of mass, com, bias and tilt.
    noise : (6,), root mean square of the residuals [N, N m].
    reversed : True if the sensor reports the wrench that its load exerts, which has the opposite sign.
    """

    mass: float
    com: Array
    inertia: Array | None
    bias: Array
    tilt: Array
    deviations: Mapping[str, Array]
    noise: Array
    samples: int
    reversed: bool

    @property
    def notices(self) -> tuple[str, ...]:
        out = []
        if self.reversed:
            out.append("the sensor reports the wrench that its load exerts: its sign is opposite to the model's")
        if (np.abs(self.tilt) > np.maximum(_TILTED_RAD, 3 * self.deviations["tilt"])).any():
            degrees = ", ".join(f"{x:.1f}" for x in np.degrees(self.tilt))
            out.append(f"the sensor is turned by ({degrees}) degrees about its axes against the recorded pose")
        return tuple(out)

    def quantities(self, name: str) -> tuple[Quantity, ...]:
        """Values of ``mass``, ``com``, ``bias`` or ``tilt``, with deviations and intervals."""
        values, deviations = (np.atleast_1d(x).tolist() for x in (getattr(self, name), self.deviations[name]))
        return tuple(Quantity(value, deviation, (value - NORMAL_95 * deviation, value + NORMAL_95 * deviation))
            for value, deviation in zip(values, deviations, strict=True))

    def content(self) -> dict[str, Any]:
        """Plain data for JSON and YAML."""
        deviations = {name: np.round(value, 9).tolist() for name, value in self.deviations.items()}
        intervals = {name: [one.interval for one in self.quantities(name)] for name in ("com", "bias", "tilt")}
        return {
            "mass": self.mass, "com": self.com.tolist(), "bias": self.bias.tolist(), "tilt": self.tilt.tolist(),
            "inertia": None if self.inertia is None else self.inertia.tolist(), "deviations": deviations,
            "intervals": {"mass": self.quantities("mass")[0].interval, **intervals},
            "noise": self.noise.tolist(), "samples": self.samples, "reversed": self.reversed}


def sensor_motion(recording: Recording, sensor: str, poses: Array, gravity: Array) -> SensorMotion:
    """Return wrench and regressor of a sensor that moves along given poses.

    Wrench and regressor pass the same low-pass. If the sample rate is too low for accelerations, every sample is
    treated as at rest, without a low-pass.

    Parameters
    ----------
    sensor : name of the wrench; empty if there is only one wrench.
    poses : (N, 7), position [m] and quaternion (x, y, z, w) of the sensor in the world.
    gravity : (3,), in the world [m/s^2].

    Raises
    ------
    RecordingError
        There is no such wrench, fewer than 20 samples have a valid pose and wrench, or the recording is too short for
        the low-pass.
    """
    wrench = _wrench_of(recording, sensor)
    quaternions, invalid = checked_quaternions(poses[:, 3:], recording.name)
    good = ~invalid & (np.abs(poses) < _MAX_VALUE).all(axis=1) & (np.abs(wrench) < _MAX_VALUE).all(axis=1)
    if good.sum() < 20:
        raise RecordingError(f"{recording.name}: {good.sum()} samples with pose and wrench; record at least 20")
    time, position, turned, wrench = recording.time[good], poses[good, :3], quaternions[good], wrench[good]
    turned = Rotation.from_quat(turned)
    if 1 / float(np.median(np.diff(time))) < _MIN_DYNAMIC_RATE_HZ:
        still = np.zeros((len(time), 3))
        return SensorMotion(wrench, _regressor(turned.inv().apply(-gravity), still, still), False)
    pieces = np.split(np.arange(len(time)), np.flatnonzero(np.diff(time) > 1 / _CUTOFF_HZ) + 1)
    spans = [float(time[rows[-1]] - time[rows[0]]) for rows in pieces]
    long = [rows for rows, s in zip(pieces, spans, strict=True) if len(rows) * (s - 2 / _CUTOFF_HZ) > 22 * s]
    if not long:
        raise RecordingError(
            f"{recording.name}: lasts {max(spans):.2g} s without a gap, too short for the low-pass at {_CUTOFF_HZ:g}"
            " Hz; record at least 1 s, preferably 10 s or more")
    moved = [_low_passed(time[rows], position[rows], turned[rows], wrench[rows], gravity) for rows in long]
    wrench, regressor = (np.concatenate(parts) for parts in zip(*moved, strict=True))
    return SensorMotion(wrench, regressor, True)


def _low_passed(time: Array, position: Array, turned: Rotation, wrench: Array, gravity: Array) -> tuple[Array, Array]:
    """Low-passed wrench and regressor of a piece of a recording without gaps."""
    even, period = np.linspace(time[0], time[-1], len(time), retstep=True)
    margin = round(1 / _CUTOFF_HZ / period)
    position, wrench = (scipy.interpolate.make_interp_spline(time, x, 3)(even) for x in (position, wrench))
    turned = Slerp(time, turned)(even)
    velocity = np.gradient(position, period, axis=0)
    acceleration = np.gradient(velocity, period, axis=0)[1:-1]
    rate = (turned[:-2].inv() * turned[2:]).as_rotvec() / (2 * period)
    force = turned[1:-1].inv().apply(acceleration - gravity)
    regressor = _regressor(force, rate, np.gradient(rate, period, axis=0))
    low_pass = scipy.signal.butter(2, min(2 * _CUTOFF_HZ * period, 0.8), output="sos")
    inside = slice(margin, -max(margin, 1))
    wrench, regressor = (scipy.signal.sosfiltfilt(low_pass, x, axis=0)[inside] for x in (wrench[1:-1], regressor))
    return wrench, regressor


def _wrench_of(recording: Recording, sensor: str) -> Array:
    names = list(recording.wrenches)
    if (sensor and sensor not in names) or (not sensor and len(names) != 1):
        wanted = f"has no wrench '{sensor}'" if sensor else "needs one wrench"
        raise RecordingError(
            f"{recording.name}: {wanted} (recorded: {', '.join(names) or 'none'}); choose one with --sensor")
    return np.asarray(recording.wrenches[sensor or names[0]])


def identify_force_sensor(motions: Sequence[SensorMotion]) -> ForceSensorLoad:
    """Estimate load and bias of one sensor from several recordings, by weighted least squares.

    Every axis is weighted by its own noise; standard deviations account for residuals that are correlated in time.

    Raises
    ------
    RecordingError
        The motion does not separate load and bias.
    """
    stride = max(1, sum(map(len, motions)) // _MAX_ROWS)
    wrench = np.concatenate([motion.wrench[::stride] for motion in motions])
    regressor = np.concatenate([motion.regressor[::stride] for motion in motions])
    dynamic = all(motion.dynamic for motion in motions)
    used = np.r_[_BODY, _INERTIA if dynamic else slice(0, 0), _BIAS, _TILT]
    linear, noise, x = used[used < _TILT.start], np.ones(6), np.zeros(_TILT.stop)

    def residual(values: Array) -> Array:
        full = np.zeros(_TILT.stop)
        full[used] = values
        mounted = Rotation.from_rotvec(full[_TILT]).inv()
        of_load = regressor @ full[:10]
        turned = np.hstack([mounted.apply(of_load[:, :3]), mounted.apply(of_load[:, 3:])])
        return np.asarray((turned + full[_BIAS] - wrench) / noise)

    whole = np.concatenate([regressor, np.tile(np.eye(6), (len(wrench), 1, 1))], axis=2)  # with the tilt at zero
    for _ in range(_REWEIGHTINGS):
        columns = (whole[:, :, linear] / noise[:, None]).reshape(-1, len(linear))
        x[linear] = np.linalg.lstsq(columns, (wrench / noise).ravel(), rcond=None)[0]
        noise = np.maximum(residual(x[used]).std(axis=0) * noise, 1e-9)
    steps = {"x_scale": "jac", "max_nfev": _MAX_STEPS}
    for _ in range(_REWEIGHTINGS):
        fit = scipy.optimize.least_squares(lambda values: residual(values).ravel(), x[used], **steps)
        x[used], left = fit.x, residual(fit.x)
        noise = np.maximum(left.std(axis=0) * noise, 1e-9)
    correlated = max(_correlation(column) for column in left.T)
    size = np.maximum(np.linalg.norm(fit.jac, axis=0), 1e-300)
    information = (fit.jac / size).T @ (fit.jac / size) + _RIDGE_SHARE * np.eye(len(used))
    covariance = np.zeros((len(x), len(x)))
    covariance[np.ix_(used, used)] = correlated * np.linalg.inv(information) / np.outer(size, size)
    return _load(x, covariance, noise, len(wrench))


def _regressor(force: Array, rate: Array, change: Array) -> Array:
    """Regressor ``(N, 6, 10)`` of a wrench, from specific force, angular velocity and its derivative ``(N, 3)``."""
    return np.einsum("rcz,nz->nrc", WRENCH_TABLE, wrench_products(force, change, rate))


def _correlation(residual: Array) -> float:
    """Factor, at least 1, by which the correlation of residuals ``(N,)`` in time increases a variance."""
    centred = residual - residual.mean()
    power = float(centred @ centred)
    if not power:
        return 1.0
    count = min(len(centred) // 4, 400)
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    lags = np.fft.irfft(spectrum)[1 : count + 1] / power
    negative = np.flatnonzero(lags < 0)
    return float(max(1.0, 1.0 + 2.0 * lags[: negative[0] if len(negative) else count].sum()))


def _load(x: Array, covariance: Array, noise: Array, samples: int) -> ForceSensorLoad:
    sign = 1.0 if x[0] >= 0 else -1.0
    mass, mounted = sign * float(x[0]), Rotation.from_rotvec(x[_TILT]).inv()
    deviation = np.sqrt(np.diagonal(covariance))
    if not deviation[0] < _MAX_MASS_DEVIATION * mass:
        raise RecordingError(
            f"the motion does not separate load and bias (mass {mass:.3g} kg, standard deviation {deviation[0]:.2g}"
            " kg); turn the sensor far about two axes while it is recorded")
    com = mounted.apply(x[1:4] / x[0])
    # In the axes of the sensor the centre of mass turns with the tilt.
    slope = mounted.as_matrix() @ np.hstack([-x[1:4, None] / x[0] ** 2, np.eye(3) / x[0], skew(x[1:4] / x[0])])
    moved = np.r_[_BODY, _TILT]
    of_com = np.sqrt(np.diagonal(slope @ covariance[np.ix_(moved, moved)] @ slope.T))
    body, inertia = sign * x[:10], None
    largest = np.abs(inertia_about_origin(body)).max()
    about_com = mounted.as_matrix() @ mass_com_inertia(body).inertia @ mounted.as_matrix().T
    shown = largest > 0 and (deviation[_INERTIA] < _MAX_INERTIA_DEVIATION * largest).all()
    if shown and np.linalg.eigvalsh(about_com)[0] > 0:
        inertia = about_com
    deviations = {"mass": deviation[0], "com": of_com, "bias": deviation[_BIAS], "tilt": deviation[_TILT]}
    return ForceSensorLoad(
        mass, com, inertia, x[_BIAS], x[_TILT], {name: np.asarray(value) for name, value in deviations.items()},
        noise, samples, sign < 0)
