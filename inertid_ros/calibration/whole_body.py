"""Centre of mass, momentum and contact wrenches of a robot on a free base ([vanDerGaag2024]_ sec. IV-B, eq. 4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross, rotation_matrices, skew
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.body_equations import BodySegmentEquations
from inertid_ros.regressors.equations import Equations, dense_equations
from inertid_ros.regressors.momentum_equations import MomentumEquations
from inertid_ros.robot.contacts import wrenches_of_force
from inertid_ros.robot.kinematics import batches
from inertid_ros.robot.model import RobotModel

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class WholeBodyQuantity:
    """Quantity of a whole robot at the usable samples of a recording.

    Attributes
    ----------
    name : quantity with its frame and unit
    channels : ``c`` names
    value : (N, c), NaN if unknown
    deviation : (N, c), standard deviation of ``value`` by the covariance of the parameters
    """

    name: str
    channels: tuple[str, ...]
    value: Array
    deviation: Array


def whole_body_quantities(
    equations: Equations, parameters: Array, covariance: Array, parts: Sequence[Samples]
) -> tuple[WholeBodyQuantity, ...]:
    """Centre of mass, momentum about it, and the error of wrenches that are predicted from joint torques.

    The frame is the world, or the base for equations of momentum, which do not contain the pose of the base. A fixed
    base has none of these. Errors of wrenches need contacts that measure whole wrenches. Segments on
    boards that measure only pressure have errors of the zero-moment point ([Lee2019]_ sec. 3.6.3).
    """
    model, in_world = equations.model, equations.equation_type != MomentumEquations.equation_type
    if not model.free:
        return ()
    usable = [part.select(np.flatnonzero(part.usable)) for part in parts]
    batched = [part.select(rows) for part in usable for rows in batches(len(part))]
    if isinstance(equations, BodySegmentEquations):
        if model.ground is None:
            return ()
        errors = _joined([_point_errors(equations, parameters, covariance, batch) for batch in batched])
        return (WholeBodyQuantity("measured minus predicted zero-moment point, board [m]", _AXES[:2], *errors),)
    frame = "world" if in_world else "base"
    names = tuple(f"{part} {axis}" for part in ("linear", "angular") for axis in _AXES)
    value, deviation = _joined([_centroidal(model, parameters, covariance, batch, in_world) for batch in batched])
    out = [WholeBodyQuantity(f"centre of mass, {frame} [m]", _AXES, value[:, :3], deviation[:, :3]),
        WholeBodyQuantity(f"momentum about it, {frame} [N s, N m s]", names, value[:, 3:], deviation[:, 3:])]
    if model.contacts and model.ground is None:
        names = tuple(f"{contact.name} {part} {axis}"
            for contact in model.contacts for part in ("force", "torque") for axis in _AXES)
        errors = _joined([_wrench_errors(equations, parameters, covariance, batch) for batch in batched])
        out.append(WholeBodyQuantity("measured minus predicted wrench [N, N m]", names, *errors))
    return tuple(out)


def _point_errors(equations: BodySegmentEquations, parameters: Array, covariance: Array, samples: Samples
        ) -> tuple[Array, Array]:
    """Measured minus predicted zero-moment points on a board ``(k, 2)``, and their standard deviations."""
    rows, tau = equations.coefficients(samples, slice(None)), samples.tau
    moments = np.stack([-rows[:, 4], rows[:, 3]], axis=1)
    force = rows[:, 2] @ parameters
    with np.errstate(divide="ignore", invalid="ignore"):  # without load, there is no point
        points = moments @ parameters / force[:, None]
        slope = (moments - points[..., None] * rows[:, 2:3]) / force[:, None, None]
        return np.stack([-tau[:, 4], tau[:, 3]], axis=1) / tau[:, 2:3] - points, _deviation(slope, covariance)


def _joined(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    values, deviations = zip(*pairs, strict=True)
    return np.concatenate(values), np.concatenate(deviations)


def _centroidal(model: RobotModel, parameters: Array, covariance: Array, samples: Samples, in_world: bool
        ) -> tuple[Array, Array]:
    """Centre of mass, linear momentum and angular momentum about it ``(k, 9)``, and their standard deviations."""
    equations, size = MomentumEquations(model), model.layout.inertial_size
    x, q = parameters[:size], samples.q
    surge, sway = (equations.regressor(q, np.tile(velocity, (len(q), 1)))  # of the base alone, at 1 m/s along x and y
        for velocity in np.eye(model.velocities)[:2])
    mass, moments = surge[:, :1], np.stack([sway[:, 5], -surge[:, 5], surge[:, 4]], axis=1)
    centre = (moments @ x) / (mass @ x)
    of_centre = (moments - centre[:, :, None] * mass) / (mass @ x)[:, :, None]
    momentum = equations.regressor(q, samples.v)
    linear, of_linear = momentum[:, :3] @ x, momentum[:, :3]
    angular = momentum[:, 3:] @ x - cross(centre, linear)
    of_angular = momentum[:, 3:] + skew(linear) @ of_centre - skew(centre) @ of_linear
    value, slope = np.stack([centre, linear, angular], axis=1), np.stack([of_centre, of_linear, of_angular], axis=1)
    if in_world:
        turn = rotation_matrices(q[:, None, 3:7])
        value, slope = (turn @ value[..., None])[..., 0], turn @ slope
        value[:, 0] += q[:, :3]
    return value.reshape(-1, 9), _deviation(slope.reshape(len(q), 9, size), covariance[:size, :size])


def _wrench_errors(equations: Equations, parameters: Array, covariance: Array, samples: Samples
        ) -> tuple[Array, Array]:
    """Measured minus predicted wrenches ``(k, 6 c)`` of ``c`` contacts, and their standard deviations.

    Joint torque and measured wrenches are one side of the equations, so that what the parameters do not explain is the
    generalized force of this difference.
    """
    every = replace(samples, mask=np.ones_like(samples.mask))
    (blocks,) = dense_equations(equations, every, len(every))
    rows = np.zeros((len(samples), equations.count, len(parameters)))
    for channel, (columns, (block, _)) in enumerate(zip(equations.columns, blocks, strict=True)):
        rows[:, channel, columns] = block
    explain = wrenches_of_force(equations.model, samples.q)
    error = (explain @ (samples.tau - equations.predict(parameters, samples))[..., None])[..., 0]
    error[~samples.mask.all(axis=1)] = np.nan
    return error, _deviation(explain @ rows, covariance)


def _deviation(slope: Array, covariance: Array) -> Array:
    """Standard deviations ``(k, c)`` of values with slopes ``(k, c, p)`` in the parameters."""
    return np.sqrt(np.maximum(np.sum(slope @ covariance * slope, axis=2), 0.0))
