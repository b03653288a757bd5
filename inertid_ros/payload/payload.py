"""Identify mass, centre of mass and inertia of a payload, with intervals; content of payload.json.

An ensemble sampler ([Goodman2010]_) draws physically consistent bodies from the posterior. Its coordinates are the
logarithm of the mass, the centre of mass, and the matrix logarithm of the second moments per mass about the centre of
mass; these coordinates cover exactly the consistent bodies. Gravity torques determine mass and centre of mass. The
inertia of a small payload is below the noise and near the border of consistency, so that a normal distribution does
not describe it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, one_thread
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import MassComInertia, from_mass_com_inertia, inertia_of_moments, symmetric
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.residuals import band_fraction, effective_fraction, noise_levels
from inertid_ros.regressors.equations import Equations, equations_of

from .equations import CalibratedRobot, FrictionDrift, PayloadEquations, ToolFrame, payload_equations

_NOISE_ITERATIONS = 4
_MAX_PRIOR_COUNT = 20.0  # samples; largest weight of the calibration's noise
_ELEMENTS = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}  # of the inertia
PAYLOAD_FORMAT = 1
# Prior: root mean square extent per axis of typical payloads (1 to 20 cm), and distance from the tool frame.
SIZE, SIZE_FACTOR = 0.05, 2.0  # m and 1
COM_DEVIATION = 0.3  # m
_COORDINATES = 10
_WALKERS, _STEPS, _BURN_IN, _THINNING = 480, 800, 300, 5  # many walkers: overhead dominates the cost of a step
_MAX_COORDINATE = 50.0  # prevents overflow in proposals that will be rejected
_STRETCH = 2.0  # largest step of the stretch move
_MOMENT_ROWS, _MOMENT_COLUMNS = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)  # of the matrix elements in coordinates 4 to 9


@dataclass(frozen=True)
class Quantity:
    """Posterior mean, standard deviation and 95 % interval of one quantity."""

    value: float
    deviation: float
    interval: tuple[float, float]

    @classmethod
    def from_samples(cls, samples: Array, least: float = -np.inf) -> "Quantity":
        """Summarise samples ``(k,)`` of a quantity that is never below ``least``."""
        return cls(float(samples.mean()), float(samples.std()), shortest_interval(samples, least=least))

    @property
    def half_width(self) -> float:
        return 0.5 * (self.interval[1] - self.interval[0])


@dataclass(frozen=True)
class Payload:
    """A payload in the frame ``tool``.

    Attributes
    ----------
    mass : [kg]
    com : centre of mass, x, y, z [m].
    inertia : about the centre of mass: xx, xy, xz, yy, yz, zz [kg m^2].
    covariance : (10, 10), of :attr:`parameters`.
    residual_deviation : (c,), standard deviation of the residual with the payload per channel [N m or N].
    """

    tool: ToolFrame
    mass: Quantity
    com: tuple[Quantity, ...]
    inertia: tuple[Quantity, ...]
    covariance: Array
    residual_deviation: Array
    equations: PayloadEquations

    @property
    def com_vector(self) -> Array:
        """``(3,)`` centre of mass [m]."""
        return np.array([quantity.value for quantity in self.com])

    @property
    def inertia_matrix(self) -> Array:
        """``(3, 3)`` about the centre of mass [kg m^2]."""
        return symmetric([element.value for element in self.inertia])

    @property
    def parameters(self) -> Array:
        """``(10,)`` about the origin of the tool frame; consistent, as a mean of consistent bodies."""
        return from_mass_com_inertia(self.mass.value, self.com_vector, self.inertia_matrix)


@dataclass(frozen=True)
class _Data:
    """Recordings, all with or all without payload, and their information."""

    equations: Equations
    recordings: tuple[Samples, ...]
    information: Information

    @classmethod
    def from_samples(cls, equations: Equations, recordings: Sequence[Samples]) -> "_Data":
        information = compress(equations, recordings)
        if not information.counts.any():
            names = ", ".join(samples.name for samples in recordings)
            raise IdentificationError(f"{names}: no joint slides long enough to be used; move more, or record longer")
        return cls(equations, tuple(recordings), information)


@one_thread()
def identify_payload(
        robot: CalibratedRobot, tool: ToolFrame, loaded: Sequence[Samples], reference: Sequence[Samples] = (),
        drift: FrictionDrift | None = None) -> Payload:
    """Identify the payload of a calibrated robot from ordinary motion; resting joints do not count.

    Parameters
    ----------
    loaded : recordings with the payload, filtered like the calibration's recordings.
    reference : recordings of the same session without the payload.

    Raises
    ------
    IdentificationError
        No joint slides long enough.
    """
    drift = drift or FrictionDrift()
    data = [_Data.from_samples(robot.equations, kind) for kind in (loaded, reference) if kind]
    variances = [robot.deviation**2 / np.maximum(band_fraction(kind.recordings), 1e-3) for kind in data]
    for _ in range(_NOISE_ITERATIONS):
        weighted = [
            (kind.information, 1 / np.sqrt(variance)) for kind, variance in zip(data, variances, strict=True)]
        equations = payload_equations(robot, tool, weighted, drift)
        data[0] = _with_load(robot, tool, data[0], equations.payload)
        # Noise from the residuals of this estimate gives the weights of the next estimate.
        found = (
            (equations.loaded, equations.loaded_covariance), (equations.reference, equations.reference_covariance))
        noise = [_noise(robot, kind, *each) for kind, each in zip(data, found, strict=False)]
        variances = [variance for variance, _ in noise]
    bodies = sample_bodies(equations)
    least = [0.0 if row == column else -np.inf for row, column in _ELEMENTS.values()]
    inertia = (bodies.inertia[:, row, column] for row, column in _ELEMENTS.values())
    return Payload(
        tool, Quantity.from_samples(bodies.mass, least=0.0), tuple(map(Quantity.from_samples, bodies.com.T)),
        tuple(map(Quantity.from_samples, inertia, least)), covariance=np.cov(from_mass_com_inertia(*bodies).T),
        residual_deviation=noise[0][1], equations=equations)


def _with_load(robot: CalibratedRobot, tool: ToolFrame, data: _Data, payload: Array) -> _Data:
    """Include the payload in the load torque if user terms depend on this torque."""
    model = robot.equations.model
    if not any(term.uses_load for term in model.layout.terms):
        return data
    bodies = model.layout.bodies(robot.parameters) + tool.bodies(payload, len(model.link_names))
    equations = equations_of(replace(model, fitted_bodies=bodies), robot.equations.equation_type)
    return _Data.from_samples(equations, data.recordings)


def _noise(robot: CalibratedRobot, data: _Data, parameters: Array, covariance: Array) -> tuple[Array, Array]:
    """Equivalent variance ``(c,)`` of independent noise, and standard deviation ``(c,)`` of the residual."""
    residuals = [samples.tau - data.equations.predict(parameters, samples) for samples in data.recordings]
    counts = np.maximum(data.information.counts, 1)
    masks = [samples.mask for samples in data.recordings]
    fraction = np.minimum(effective_fraction(residuals, masks), band_fraction(data.recordings))
    missed = np.array([channel.expected_square(covariance) for channel in data.information.channels]) / counts
    mean_square = data.information.rms_error(parameters) ** 2 + missed
    weight = np.minimum(robot.counts, _MAX_PRIOR_COUNT)
    squared = (weight * robot.deviation**2 + fraction * counts * mean_square) / (weight + fraction * counts)
    variance = squared / fraction
    _, largest = noise_levels(data.equations, data.recordings, residuals, covariance, 1 / variance)
    return np.maximum(variance, largest), np.sqrt(squared)


def payload_content(payload: Payload) -> dict[str, Any]:
    """Plain data of mass [kg], centre of mass [m] and inertia about the centre of mass [kg m^2], in the tool frame."""
    return {
        "format": PAYLOAD_FORMAT, "frame": payload.tool.name, "mass": _quantity(payload.mass),
        "com": dict(zip("xyz", map(_quantity, payload.com), strict=True)),
        "inertia": dict(zip(_ELEMENTS, map(_quantity, payload.inertia), strict=True)),
        "parameters": payload.parameters,
        "covariance": payload.covariance,
        "as_robots_take_it": as_robots_take_it(payload)}


def as_robots_take_it(payload: Payload) -> dict[str, Any]:
    """Payload in the conventions of robot controllers and ROS messages.

    - URScript's ``set_target_payload``: inertia xx, yy, zz, xy, xz, yz about the centre of mass; ``cog`` from the tool
      flange, whose frame is ``tool0`` in the URDFs of ur_description.
    - libfranka's ``Robot::setLoad`` and franka_msgs/SetLoad: inertia about the centre of mass, column-major;
      ``F_x_Cload`` from the flange, whose frame is ``panda_link8`` or ``fr3_link8`` in the URDFs of franka_description.
    - Franka Desk: ``endeffector-config.json`` of an end effector archive, with column-major matrices.
    - KUKA's ``LOAD`` and ABB's ``loaddata``: millimetres, and moments about the principal axes through the centre of
      mass; ``A``, ``B`` and ``C`` rotate about z, the new y and then the new x [degrees]; ABB's quaternion is w x y z.
    - geometry_msgs/InertiaStamped: inertia about the centre of mass.
    """
    mass, com = payload.mass.value, payload.com_vector.tolist()
    by_columns: list[float] = payload.inertia_matrix.ravel(order="F").tolist()
    elements = dict(zip(_ELEMENTS, (quantity.value for quantity in payload.inertia), strict=True))
    ur = [elements[name] for name in ("xx", "yy", "zz", "xy", "xz", "yz")]
    moments, axes = np.linalg.eigh(payload.inertia_matrix)
    turn = scipy.spatial.transform.Rotation.from_matrix(axes * np.linalg.det(axes))  # a right-handed frame
    place = [*(1e3 * payload.com_vector), *turn.as_euler("ZYX", degrees=True)]
    turned = turn.as_quat(canonical=True)[[3, 0, 1, 2]].tolist()
    frame, kuka, abb = ([f"{value:.7f}" for value in values] for values in (place, moments, turned))
    return {
        "set_target_payload": {
            "m": mass, "cog": com, "inertia": ur,
            "script": f"set_target_payload({mass:.4f}, {_numbers(com)}, {_numbers(ur)})"},
        "setLoad": {
            "load_mass": mass, "F_x_Cload": com, "load_inertia": by_columns,
            "call": f"setLoad({mass:.4f}, {_numbers(com)}, {_numbers(by_columns)})"},
        "endeffector-config.json": {
            "id": "payload", "name": "payload", "color": "#808080", "mass": mass, "centerOfMass": com,
            "transformation": np.eye(4).ravel().tolist(), "inertia": by_columns},
        "LOAD": f"{{M {mass:.4f},CM {{{_fields('XYZABC', frame)}}},J {{{_fields('XYZ', kuka)}}}}}",
        "loaddata": f"[{mass:.4f},[{','.join(frame[:3])}],[{','.join(abb)}],{','.join(kuka)}]",
        "geometry_msgs/InertiaStamped": {
            "header": {"frame_id": payload.tool.name},
            "inertia": {"m": mass, "com": dict(zip("xyz", com, strict=True))}
            | {f"i{name}": value for name, value in elements.items()}}}


def _quantity(quantity: Quantity) -> dict[str, Any]:
    return {"value": quantity.value, "standard_deviation": quantity.deviation, "interval": list(quantity.interval)}


def _fields(names: str, values: list[str]) -> str:
    return ",".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def _numbers(values: list[float]) -> str:
    return "[" + ", ".join(f"{value:.5f}" for value in values) + "]"


def sample_bodies(equations: PayloadEquations) -> MassComInertia:
    """Draw ``k`` bodies in the tool frame from the posterior of a payload.

    The prior of the mass is flat. The prior of the centre of mass is normal about the tool frame's origin
    (:data:`COM_DEVIATION`); the prior of the second moments per mass is log-normal about :data:`SIZE` squared.
    """
    rng = np.random.default_rng(0)
    best = scipy.optimize.minimize(lambda x: -_log_density(equations, x[None])[0], _start(equations), method="BFGS")
    values, vectors = np.linalg.eigh(best.hess_inv)
    root = vectors * np.sqrt(np.maximum(values, 1e-12))
    walkers = best.x + rng.standard_normal((_WALKERS, _COORDINATES)) @ root.T
    return _bodies(_ensemble(equations, walkers, rng))


def _start(equations: PayloadEquations) -> Array:
    mass = max(float(equations.payload[0]), 0.1)
    com = np.clip(equations.payload[1:4] / mass, -COM_DEVIATION, COM_DEVIATION)
    return np.concatenate([[np.log(mass)], com, np.full(3, 2 * np.log(SIZE)), np.zeros(3)])


def _ensemble(equations: PayloadEquations, walkers: Array, rng: np.random.Generator) -> Array:
    """Move an ensemble of walkers by stretch moves; return its points after a burn-in ([Goodman2010]_ sec. 2)."""
    half = len(walkers) // 2
    density = _log_density(equations, walkers)
    points = []
    for step in range(_STEPS):
        for moved, others in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
            scale = (1 + (_STRETCH - 1) * rng.random(half)) ** 2 / _STRETCH
            partner = walkers[others][rng.integers(half, size=half)]
            proposed = partner + scale[:, None] * (walkers[moved] - partner)
            new = _log_density(equations, proposed)
            ratio = (_COORDINATES - 1) * np.log(scale) + new - density[moved]
            accepted = np.log(rng.random(half)) < ratio
            walkers[moved] = np.where(accepted[:, None], proposed, walkers[moved])
            density[moved] = np.where(accepted, new, density[moved])
        if step >= _BURN_IN and step % _THINNING == 0:
            points.append(walkers.copy())
    return np.concatenate(points)


def _log_density(equations: PayloadEquations, x: Array) -> Array:
    """Log density ``(k,)`` at coordinates ``(k, 10)``, up to a constant."""
    x = np.clip(x, -_MAX_COORDINATE, _MAX_COORDINATE)
    bodies = from_mass_com_inertia(*_bodies(x))
    misfit = np.sum((bodies @ equations.R.T - equations.z) ** 2, axis=1)
    logarithm = x[:, 4:] - np.array([2 * np.log(SIZE)] * 3 + [0.0] * 3)
    size = np.sum(logarithm[:, :3] ** 2, axis=1) + 2 * np.sum(logarithm[:, 3:] ** 2, axis=1)
    prior = size / (2 * np.log(SIZE_FACTOR)) ** 2 + np.sum(x[:, 1:4] ** 2, axis=1) / COM_DEVIATION**2
    return np.asarray(x[:, 0] - 0.5 * (misfit + prior))  # the first term makes the prior flat in mass


def _bodies(x: Array) -> MassComInertia:
    logarithm = np.zeros((len(x), 3, 3))
    logarithm[:, _MOMENT_ROWS, _MOMENT_COLUMNS] = logarithm[:, _MOMENT_COLUMNS, _MOMENT_ROWS] = x[:, 4:]
    values, vectors = np.linalg.eigh(logarithm)
    moments = (vectors * np.exp(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    mass = np.exp(x[:, 0])
    return MassComInertia(mass, x[:, 1:4], mass[:, None, None] * inertia_of_moments(moments))


def shortest_interval(values: Array, least: float = -np.inf) -> tuple[float, float]:
    """Return the shortest interval that holds 95 % of the samples ``(k,)``.

    If this interval begins at the smallest sample, its lower end is ``least``, the bound of the quantity.
    """
    ordered = np.sort(values)
    inside = int(np.ceil(0.95 * len(ordered)))
    widths = ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]
    first = int(np.argmin(widths))
    edge = first <= 0.005 * len(ordered)
    return (least if edge and np.isfinite(least) else float(ordered[first])), float(ordered[first + inside - 1])
