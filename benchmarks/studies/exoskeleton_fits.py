"""Estimators and measures of [vanDerGaag2024]_ on the exoskeleton.

Truncated least squares with weighted rows and columns, and our fit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array, skew
from inertid_ros.core.samples import Samples
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.identification.information.information import Information
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import RobotModel

METRICS = ("gen. force", "torque [Nm]", "CoM [mm]", "momentum", "parameters [%]")


class Evaluation:
    """Errors of parameters on data without noise: norms over all rows, root mean square over the samples.

    ([vanDerGaag2024]_ sec. IV-B.)
    """

    def __init__(self, model: RobotModel, samples: Samples) -> None:
        self.model, self.samples, self._truth = model, samples, model.prior
        self._moments, self._momenta = _centroidal_maps(model, samples)
        self._com, self._momentum = self._centroidal(self._truth)

    def __call__(self, parameters: Array) -> Array:
        """``(5,)``: generalized force [N, N m], joint torque [N m] with known external wrenches, centre of mass [mm],
        centroidal momentum [N s, N m s], mean relative error of the parameters [%]."""
        error = ForceEquations(self.model).predict(parameters, self.samples) - self.samples.tau
        com, momentum = self._centroidal(parameters)
        relative = np.abs(parameters / self._truth - 1)[self._truth != 0]
        parts = (error, error[:, 6:], 1e3 * (com - self._com), momentum - self._momentum)
        return np.array([*map(rms, parts), 100 * relative.mean()])

    def _centroidal(self, parameters: Array) -> tuple[Array, Array]:
        """Centre of mass in the world and momentum about it, linear then angular, for any parameters."""
        com = self._moments @ parameters / self.model.layout.bodies(parameters)[:, 0].sum()
        momentum = self._momenta @ parameters
        momentum[:, 3:] -= np.cross(com, momentum[:, :3])
        return com, momentum


def _centroidal_maps(model: RobotModel, samples: Samples) -> tuple[Array, Array]:
    """``(N, 3, p)`` first moments and ``(N, 6, p)`` momentum about the origin of the world, per parameter."""
    kinematics, data = model.pinocchio, model.pinocchio.createData()
    moments, momenta = np.zeros((len(samples), 3, model.layout.size)), np.zeros((len(samples), 6, model.layout.size))
    for row, (q, v) in enumerate(zip(samples.q, samples.v, strict=True)):
        pin.forwardKinematics(kinematics, data, q, v)
        for body in range(len(model.link_names)):
            place, motion, columns = data.oMi[body + 1], data.v[body + 1], model.layout.body(body)
            moments[row, :, columns] = np.column_stack([place.translation, place.rotation, np.zeros((3, 6))])
            momenta[row, :, columns] = place.toActionMatrixInverse().T @ _momentum_map(motion.linear, motion.angular)
    return moments, momenta


def _momentum_map(v: Array, w: Array) -> Array:
    """Momentum of one body at its own origin, per parameter ``(6, 10)``."""
    out = np.zeros((6, 10))
    out[:3, 0], out[:3, 1:4] = v, skew(w)
    out[3:, 1:4] = -skew(v)
    for column, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), start=4):
        out[3 + i, column] = w[j]
        out[3 + j, column] = w[i]
    return out


def rms(errors: Array) -> float:
    """Root mean square of the rows' norms."""
    return float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))


@dataclass(frozen=True)
class Method:
    """A method of [vanDerGaag2024]_ table I.

    Attributes
    ----------
    rows : bool
        Weight rows by the residual deviation of ordinary least squares ([vanDerGaag2024]_ eqs. 29-32).
    columns : bool
        Scale columns by the prior ([vanDerGaag2024]_ sec. III-C).
    """

    rows: bool
    columns: bool


METHODS = {
    "OLS": Method(False, False),
    "WLS-R": Method(True, False),
    "WLS-C": Method(False, True),
    "WLS-RC": Method(True, True),
}


def truncated(method: Method, data: Information, validation: Information, prior: Array) -> tuple[Array, int]:
    """Parameters at the rank with the smallest validation error of generalized force, and this rank.

    ([vanDerGaag2024]_ sec. IV-B.)

    Directions that are not fitted stay at the prior ([vanDerGaag2024]_ eqs. 22-23).
    """
    weights = np.ones(len(data.channels))
    if method.rows:
        ordinary = _solutions(data, weights, np.eye(len(prior)), prior)[-1]
        weights = 1 / data.rms_error(ordinary)
    scaling = np.diag(np.abs(prior)) if method.columns else np.eye(len(prior))
    candidates = _solutions(data, weights, scaling, prior)
    R, z = validation.whitened(np.ones(len(validation.channels)))
    best = int(np.argmin(np.linalg.norm(candidates @ R.T - z, axis=1)))
    return candidates[best], best


def _solutions(data: Information, weights: Array, scaling: Array, prior: Array) -> Array:
    """Prior, then solutions with one more singular value each, for all values above rounding ``(m + 1, p)``."""
    R, z = data.whitened(weights)
    left, singular, right = np.linalg.svd(R @ scaling)
    kept = int(np.sum(singular > 1e-10 * singular[0]))
    steps = (left[:, :kept].T @ (z - R @ prior)) / singular[:kept]
    return np.vstack([prior, prior + np.cumsum(steps[:, None] * (right[:kept] @ scaling.T), axis=0)])


def ours(samples: Samples, model: RobotModel, prior: Array, options: IdentifyOptions) -> Array:
    """Consistent fit from the given prior."""
    given = replace(model, body_prior=model.layout.bodies(prior).copy())
    return identify(ForceEquations(given), [samples], options).parameters


Draw = Callable[[np.random.Generator, Array], Array]


def relative(size: float) -> Draw:
    """Prior with an error of each parameter up to a share of its value."""
    return lambda rng, truth: truth * (1 + rng.uniform(-size, size, truth.shape))


def absolute(size: float) -> Draw:
    """Prior with an error of each parameter up to a size in SI units."""
    return lambda rng, truth: truth + rng.uniform(-size, size, truth.shape)
