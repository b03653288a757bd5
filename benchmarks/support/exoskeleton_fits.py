"""Estimators and measures of D on the exoskeleton: truncated least squares, rows and columns weighted, and ours."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.data.samples import Samples
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.identification.information import Information
from inertid_ros.regressors.force import ForceEquations, predict_torque
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.parameters import Array

METRICS = ("gen. force", "torque [Nm]", "CoM [mm]", "momentum", "parameters [%]")


class Judge:
    """Errors of parameters on data without noise (D IV-B): norms over all rows, root mean square over the samples."""

    def __init__(self, model: RobotModel, samples: Samples) -> None:
        self._model, self._samples, self._truth = model, samples, model.prior
        self._com, self._momentum = self._centroidal(self._truth)

    def __call__(self, parameters: Array) -> Array:
        """``(5,)``: generalized force [N, N m], joint torque [N m] with known external wrenches, centre of mass [mm],
        centroidal momentum [N s, N m s], mean relative error of the parameters [%]."""
        error = predict_torque(self._model, parameters, self._samples) - self._samples.tau
        com, momentum = self._centroidal(parameters)
        relative = np.abs(parameters / self._truth - 1)[self._truth != 0]
        return np.array(
            [
                _rms(error),
                _rms(error[:, 6:]),
                1e3 * _rms(com - self._com),
                _rms(momentum - self._momentum),
                100 * relative.mean(),
            ]
        )

    def _centroidal(self, parameters: Array) -> tuple[Array, Array]:
        """Centre of mass in the world and momentum about it, linear then angular; any parameters have them."""
        model, samples = self._model.pinocchio, self._samples
        data = model.createData()
        com, momentum = np.empty((len(samples), 3)), np.empty((len(samples), 6))
        bodies = self._model.layout.bodies(parameters)
        total = bodies[:, 0].sum()
        for row, (q, v) in enumerate(zip(samples.q, samples.v, strict=True)):
            pin.forwardKinematics(model, data, q, v)
            moment, spatial = np.zeros(3), np.zeros(6)
            for body, pi in enumerate(bodies):
                place = data.oMi[body + 1]
                moment += place.rotation @ pi[1:4] + pi[0] * place.translation
                inertia = np.array([[pi[4], pi[5], pi[7]], [pi[5], pi[6], pi[8]], [pi[7], pi[8], pi[9]]])
                linear, angular = data.v[body + 1].linear, data.v[body + 1].angular
                own = pin.Force(
                    pi[0] * linear + np.cross(angular, pi[1:4]), inertia @ angular + np.cross(pi[1:4], linear)
                )
                spatial += place.act(own).vector
            com[row] = moment / total
            momentum[row, :3] = spatial[:3]
            momentum[row, 3:] = spatial[3:] - np.cross(com[row], spatial[:3])
        return com, momentum


def _rms(errors: Array) -> float:
    """Root mean square of the rows' norms."""
    return float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))


@dataclass(frozen=True)
class Method:
    """One of D, Table I.

    Attributes
    ----------
    rows: weighted by the residual's deviation of ordinary least squares (D 29-32).
    columns: scaled by the prior (D III-C).
    """

    rows: bool
    columns: bool


METHODS = {
    "OLS": Method(False, False),
    "WLS-R": Method(True, False),
    "WLS-C": Method(False, True),
    "WLS-RC": Method(True, True),
}


def truncated(method: Method, data: Information, judge: Information, prior: Array) -> tuple[Array, int]:
    """Parameters at the rank that predicts generalized force best on the judge's data (D IV-B), and that rank.

    Directions that are not fitted stay at the prior (D 22-23).
    """
    weights = np.ones(len(data.channels))
    if method.rows:
        ordinary = _solutions(data, weights, np.eye(len(prior)), prior)[-1]
        weights = 1 / data.rms_error(ordinary)
    scaling = np.diag(np.abs(prior)) if method.columns else np.eye(len(prior))
    candidates = _solutions(data, weights, scaling, prior)
    R, z = judge.whitened(np.ones(len(judge.channels)))
    best = int(np.argmin(np.linalg.norm(candidates @ R.T - z, axis=1)))
    return candidates[best], best


def _solutions(data: Information, weights: Array, scaling: Array, prior: Array) -> Array:
    """``(m + 1, p)``: the prior, then with one singular value more each, as far as they are above rounding."""
    R, z = data.whitened(weights)
    left, singular, right = np.linalg.svd(R @ scaling)
    kept = int(np.sum(singular > 1e-10 * singular[0]))
    steps = (left[:, :kept].T @ (z - R @ prior)) / singular[:kept]
    return np.vstack([prior, prior + np.cumsum(steps[:, None] * (right[:kept] @ scaling.T), axis=0)])


def ours(samples: Samples, model: RobotModel, prior: Array, options: IdentifyOptions) -> Array:
    """The consistent fit from the same prior."""
    given = replace(model, body_prior=model.layout.bodies(prior).copy())
    return identify(ForceEquations(given), [samples], options).parameters


Draw = Callable[[np.random.Generator, Array], Array]


def relative(size: float) -> Draw:
    """A prior whose every parameter is off by up to a share of its value."""
    return lambda rng, truth: truth * (1 + rng.uniform(-size, size, truth.shape))


def absolute(size: float) -> Draw:
    """A prior whose every parameter is off by up to so many of its SI units."""
    return lambda rng, truth: truth + rng.uniform(-size, size, truth.shape)
