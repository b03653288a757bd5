"""Parameters that follow a robot: information of a stream, solved again from the last optimum."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.adaptation.calibrated_robot import CalibratedRobot
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.coordinates import ENERGY_SHARE, Coordinates, prior_coordinates
from inertid_ros.identification.prior.regularizers import Regularization, regularized
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.bodies.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .online_information import Forgetting, OnlineInformation
from .warm_newton import StreamObjective, solve_warm


@dataclass(frozen=True)
class OnlineOptions:
    """How parameters follow a robot.

    Attributes
    ----------
    prior_spread : float
        How far bodies may be from the calibration: standard deviation of their geodesic distance.
    forgetting : Forgetting
        How old samples lose weight.
    independent_fraction : float
        Independent share of the samples: two per period of the cutoff.
    """

    prior_spread: float = 0.3
    forgetting: Forgetting = Forgetting()
    independent_fraction: float = 1.0


@dataclass(frozen=True)
class OnlineEstimate:
    """Parameters at one instant.

    Attributes
    ----------
    time : float
        Of the newest sample that counts [s].
    parameters : ndarray, shape (p,)
        In the order of the layout; every body is physically consistent.
    coordinates : Coordinates
        In which they were found.
    hessian : ndarray, shape (p, p)
        Of the objective in these coordinates.
    steps : int
        Newton steps from the last estimate.
    seconds : float
        That it took to solve.
    """

    time: float
    parameters: Array
    coordinates: Coordinates
    hessian: Array
    steps: int
    seconds: float

    @cached_property
    def covariance(self) -> Array:
        """``(p, p)`` of the parameters, of data and prior together."""
        root = solve_triangular(np.linalg.cholesky(self.hessian), self.coordinates.matrix.T, lower=True)
        return np.asarray(root.T @ root)


class OnlineIdentification:
    """Follows the parameters of a robot from blocks of samples.

    Parameters
    ----------
    robot : CalibratedRobot
        Where it begins: its parameters are the prior, its residuals the weights.
    options : OnlineOptions, optional
        Prior spread and forgetting.
    """

    def __init__(self, robot: CalibratedRobot, options: OnlineOptions | None = None) -> None:
        self.options = options or OnlineOptions()
        model, layout = robot.equations.model, robot.layout
        drives = {term: robot.parameters[layout.drive(term)] for term in layout.drive_terms}
        self._model: RobotModel = replace(
            model.with_prior_bodies(layout.bodies(robot.parameters)), drive_prior={**model.drive_prior, **drives}
        )
        self.equations = equations_of(self._model, robot.equations.equation_type)
        self.weights: Array = np.sqrt(self.options.independent_fraction) / robot.deviation
        self.stream = OnlineInformation(self.equations, self.options.forgetting)
        self._parameters, self._time = _inside(layout, robot.parameters), -np.inf

    def add(self, samples: Samples) -> None:
        """Take a block, in the order of time."""
        self.stream.add(samples)
        self._time = float(samples.time[-1])

    def solve(self) -> OnlineEstimate:
        """Parameters for all that is not forgotten, from those of the last call.

        Raises
        ------
        IdentificationError
            No joint has moved yet, or there is no optimum.
        """
        if self.stream.empty:
            raise IdentificationError("online: no joint has moved yet; move the robot")
        information = self.stream.information
        coordinates, regularization = self.map_problem(information)
        size = coordinates.layout.size
        prior = regularized(np.zeros((0, size)), np.zeros(0), coordinates.layout, regularization)
        objective = StreamObjective(information, self.weights, coordinates, prior)
        start: Array = np.linalg.solve(coordinates.matrix, self._parameters - coordinates.offset).astype(float)
        try:
            found = solve_warm(objective, start)
        except ConvergenceError:
            R, z = coordinates.normalise(*information.whitened(self.weights))
            cold = MapProblem(coordinates, self._model.prior).solve(R, z, regularization)
            found = solve_warm(objective, cold.x)
        self._parameters = coordinates.physical(found.x)
        return OnlineEstimate(self._time, self._parameters, coordinates, found.hessian, found.steps, found.seconds)

    def map_problem(self, information: Information) -> tuple[Coordinates, Regularization]:
        """Coordinates and regularization of the fit of some information."""
        regularization = Regularization("entropic", self.options.prior_spread, 1.0, 1 / ENERGY_SHARE)
        return prior_coordinates(self._model, information), regularization


def _inside(layout: ParameterLayout, parameters: Array) -> Array:
    """Parameters with those that cannot be negative above zero."""
    started = parameters.copy()
    started[layout.non_negative] = np.maximum(started[layout.non_negative], 1e-6)
    return started
