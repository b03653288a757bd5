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

import numpy as np
import scipy
from scipy.spatial.transform import Rotation

from inertid_ros.core.arrays import MAD_TO_DEVIATION, Array, body_rate, checked_quaternions, rotate_back
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.inertial_parameters import inertia_about_origin, mass_com_inertia
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.estimate import NORMAL_95
from inertid_ros.robot.dynamics import WRENCH_TABLE, wrench_products

from .payload import Quantity

_MAX_ROWS = 4000  # samples of all recordings together
_MAX_VALUE = 1e6  # m, N or N m; larger values are no measurements
_MIN_DYNAMIC_RATE_HZ = 8.0  # minimum sample rate for the computation of accelerations
_CUTOFF_HZ = 5.0  # cutoff of motion and wrench, if accelerations are computed; people and arms turn tools more slowly
_CUTOFF_PER_RATE = 0.125  # largest cutoff; accelerations of a tool that moves faster are not resolved
_HUBER = 2.0  # deviations; samples of moves that are too fast for the sample rate deviate more, and count less
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
    deviations : standard deviations of mass, com, bias, tilt, and of the inertia unless it is None.
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

    def content(self) -> dict[str, object]:
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

    Wrench and regressor pass the same low-pass. Below 8 Hz, accelerations are not resolved, and without positions they
    are not known: every sample is then treated as at rest, without a low-pass.

    Parameters
    ----------
    sensor : name of the wrench; empty if there is only one wrench.
    poses : (N, 7), position [m] and quaternion (x, y, z, w) of the sensor in the world; positions may all be NaN.
    gravity : (3,), in the world [m/s^2].

    Raises
    ------
    RecordingError
        There is no such wrench, fewer than 20 samples have a valid pose and wrench, or the recording is too short for
        the low-pass.
    """
    wrench, known = _wrench_of(recording, sensor), not np.isnan(poses[:, :3]).all()
    poses = poses if known else np.hstack([np.zeros((len(poses), 3)), poses[:, 3:]])
    quaternions, invalid = checked_quaternions(poses[:, 3:], recording.name)
    good = ~invalid & (np.abs(poses) < _MAX_VALUE).all(axis=1) & (np.abs(wrench) < _MAX_VALUE).all(axis=1)
    if good.sum() < 20:
        raise RecordingError(f"{recording.name}: {good.sum()} samples with pose and wrench; record at least 20")
    time, quaternions, wrench = recording.time[good], quaternions[good], wrench[good]
    poses = np.hstack([poses[good, :3], quaternions])
    rate = 1 / float(np.median(np.diff(time)))
    if rate < _MIN_DYNAMIC_RATE_HZ or not known:
        still = np.zeros((len(time), 3))
        return SensorMotion(wrench, _regressor(rotate_back(quaternions, still - gravity), still, still), False)
    cutoff = min(_CUTOFF_HZ, _CUTOFF_PER_RATE * rate)
    pieces = np.split(np.arange(len(time)), np.flatnonzero(np.diff(time) > 1 / cutoff) + 1)
    spans = [float(time[rows[-1]] - time[rows[0]]) for rows in pieces]
    long = [rows for rows, s in zip(pieces, spans, strict=True) if len(rows) * (s - 2 / cutoff) > 22 * s]
    if not long:
        raise RecordingError(
            f"{recording.name}: lasts {max(spans):.2g} s without a gap, too short for the low-pass at {cutoff:g}"
            f" Hz; record at least {max(1.0, 2 / cutoff + 25 / rate):.2g} s, preferably 10 s or more")
    moved = [_low_passed(time[rows], poses[rows], wrench[rows], gravity, cutoff) for rows in long]
    wrench, regressor = (np.concatenate(parts) for parts in zip(*moved, strict=True))
    return SensorMotion(wrench, regressor, True)


def _low_passed(time: Array, poses: Array, wrench: Array, gravity: Array, cutoff_hz: float) -> tuple[Array, Array]:
    """Low-passed wrench and regressor of a piece of a recording without gaps."""
    even, period = np.linspace(time[0], time[-1], len(time), retstep=True)
    margin = round(1 / cutoff_hz / period)
    poses, wrench = (scipy.interpolate.make_interp_spline(time, x, 3)(even) for x in (poses, wrench))
    spline = scipy.interpolate.make_interp_spline(even, poses, 5)
    pose, first, second = (spline(even, order) for order in range(3))
    quaternion = pose[:, 3:] / np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    force = rotate_back(quaternion, second[:, :3] - gravity)
    regressor = _regressor(force, *(body_rate(quaternion, derivative[:, 3:]) for derivative in (first, second)))
    low_pass = scipy.signal.butter(2, 2 * cutoff_hz * period, output="sos")
    inside = slice(margin, -max(margin, 1))
    wrench, regressor = (scipy.signal.sosfiltfilt(low_pass, x, axis=0)[inside] for x in (wrench, regressor))
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
    steps = {"x_scale": "jac", "max_nfev": _MAX_STEPS, "loss": "huber", "f_scale": _HUBER}
    for _ in range(_REWEIGHTINGS):
        fit = scipy.optimize.least_squares(lambda values: residual(values).ravel(), x[used], **steps)
        x[used], left = fit.x, residual(fit.x)
        noise = np.maximum(MAD_TO_DEVIATION * np.median(np.abs(left), axis=0) * noise, 1e-9)
    left = residual(x[used])
    correlated = max(_correlation(column) * float(np.mean(column**2)) for column in left.T)
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
    sign, deviation = 1.0 if x[0] >= 0 else -1.0, np.sqrt(np.diagonal(covariance))
    mass = sign * float(x[0])
    if not deviation[0] < _MAX_MASS_DEVIATION * mass:
        raise RecordingError(
            f"the motion does not separate load and bias (mass {mass:.3g} kg, standard deviation {deviation[0]:.2g}"
            " kg); turn the sensor far about two axes while it is recorded")

    def com_and_inertia(x: Array) -> Array:
        """Centre of mass and inertia about it, in the axes of the sensor, which turn with the tilt."""
        turn = Rotation.from_rotvec(x[_TILT]).as_matrix().T
        about_com = mass_com_inertia(sign * x[:10]).inertia
        return np.concatenate([turn @ x[1:4] / x[0], (turn @ about_com @ turn.T).ravel()])

    slope = scipy.optimize.approx_fprime(x, com_and_inertia)
    spread = np.sqrt(np.einsum("ij,jk,ik->i", slope, covariance, slope))
    com, inertia = np.split(com_and_inertia(x), [3])
    deviations = {"mass": deviation[0], "com": spread[:3], "bias": deviation[_BIAS], "tilt": deviation[_TILT]}
    about_com, largest = inertia.reshape(3, 3), np.abs(inertia_about_origin(sign * x[:10])).max()
    shown = largest > 0 and (deviation[_INERTIA] < _MAX_INERTIA_DEVIATION * largest).all()
    if shown and np.linalg.eigvalsh(about_com)[0] > 0:
        deviations["inertia"] = spread[3:].reshape(3, 3)
    return ForceSensorLoad(
        mass, com, about_com if "inertia" in deviations else None, x[_BIAS], x[_TILT],
        {name: np.asarray(value) for name, value in deviations.items()}, noise, samples, sign < 0)
