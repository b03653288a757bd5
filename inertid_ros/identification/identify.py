"""identify: samples in, physically consistent parameters with stated confidence out. The one entry point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.samples import Samples
from ..errors import IdentificationError
from ..options import option
from ..regressors.equations import Equations
from ..regressors.kinds import KINDS, equations_of
from ..robot.layout import ParameterLayout
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .base_parameters import base_parameters, base_parameters_of_robot
from .checks import check_effort_varies, check_usable
from .constraints import Constraints
from .coordinates import ENERGY_SHARE, prior_coordinates
from .delay import estimate_delay, undelayed
from .estimate import Estimate
from .information import Information, compress
from .least_squares import LeastSquaresEstimate, least_squares
from .least_squares_options import ESTIMATORS
from .noise import effective_fraction
from .outliers import without_outliers
from .problem import SOLVERS, Problem
from .program import Solution
from .regularizers import REGULARIZERS, TYPICAL_SPREAD, Belief
from .stribeck import with_fitted_stribeck
from .uncertainty import stated

_OUTER_ITERATIONS = 30
_OUTER_TOLERANCE = 3e-3
_SPREAD_BELIEF = 30.0  # directions' worth of belief in it; what no model explains must not pass for wild bodies

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class IdentifyOptions:
    """How to identify. The defaults are meant to be left alone."""

    equations: str = option(
        "force",
        "what is measured: force (joint torques, and on a free base the external wrenches)",
        choices=tuple(KINDS),
    )
    estimator: str = option(
        "consistent",
        "consistent: bodies that can exist, near the prior; the others are classical least squares, as baselines",
        choices=("consistent", *ESTIMATORS),
    )
    regularizer: str = option(
        "entropic",
        "how distance to the prior is measured: entropic, or for comparison pullback, riemannian, euclidean, point_mass"
        " (with OSQP) or geodesic",
        choices=REGULARIZERS,
    )
    solver: str = option(
        "interior_point",
        "of convex regularizers: interior_point (built in) or clarabel (through CVXPY)",
        choices=SOLVERS,
    )
    prior_spread: float = option(
        0.0,
        "how far a link may be from its prior: standard deviation of its geodesic distance; 0 learns it from the data",
        minimum=0.0,
        maximum=100.0,
    )
    drive_weight: float = option(
        1.0, "weight of the belief that friction, rotor inertia and stiffness are small", minimum=1e-6, maximum=1e3
    )
    outlier_threshold: float = option(
        12.0,
        "samples that miss the fit by more robust standard deviations than this are left out and counted; 0 keeps all",
        minimum=0.0,
        maximum=1e6,
    )
    remove_delay: bool = option(
        False, "estimate by how much effort is reported later than motion, and shift it back; needs a rich motion"
    )

    fit_stribeck_speed: bool = option(
        False, "find the speed of every joint's Stribeck friction; needs motion slow enough to show it"
    )

    def __post_init__(self) -> None:
        estimators = ("consistent", *ESTIMATORS)
        for name, allowed in (("estimator", estimators), ("regularizer", REGULARIZERS), ("solver", SOLVERS)):
            if getattr(self, name) not in allowed:
                raise IdentificationError(f"identify.{name}: '{getattr(self, name)}' is unknown; choose from {allowed}")
        if not (self.prior_spread >= 0 and self.drive_weight > 0):
            raise IdentificationError("identify: prior_spread must not be negative, drive_weight must be above zero")


def identify(
    source: RobotModel | Equations,
    recordings: Sequence[Samples],
    options: IdentifyOptions | None = None,
    constraints: Constraints | None = None,
    progress: Progress = lambda stage, fraction: None,
) -> Estimate:
    """Physically consistent parameters by weighted least squares with a geometric prior (C 3.5.43; E 24-25).

    Each channel's equations are weighted by its residual's standard deviation, iterated, and by how many independent
    samples its correlated residual is worth, so that neither a noisy channel nor a high sampling rate shouts. Other
    estimators than the default are those of :func:`~.least_squares.least_squares`.

    Parameters
    ----------
    source: equations, or a robot, which stands for its equations of the kind that the options name.
    recordings: prepared samples, any number of recordings.
    constraints: what is known for certain beyond physical consistency.
    progress: called with a stage and a fraction from 0 to 1.

    Raises
    ------
    IdentificationError: no usable samples, no torque, contradicting constraints, or no optimum.
    """
    options = options or IdentifyOptions()
    if not recordings:
        raise IdentificationError("identify: no recordings given; give at least one")
    equations = equations_of(source, options.equations)
    model = equations.model
    progress("compressing", 0.0)
    check_effort_varies(equations, recordings)
    information = compress(equations, recordings)
    check_usable(equations, information, [samples.name for samples in recordings])
    delay = estimate_delay(equations, recordings).seconds if options.remove_delay else 0.0
    if delay:
        recordings = [undelayed(samples, delay) for samples in recordings]
    if options.fit_stribeck_speed:
        equations = with_fitted_stribeck(equations, recordings)
    if delay or options.fit_stribeck_speed:
        model, information = equations.model, compress(equations, recordings)
    if options.estimator != "consistent":
        progress("solving", 0.5)
        return replace(_classical(equations, recordings, options.estimator, constraints), delay=delay)
    coordinates = prior_coordinates(model, information)
    problem = Problem(coordinates, model.prior, constraints or Constraints(), options.solver)
    belief = Belief(options.regularizer, options.prior_spread or TYPICAL_SPREAD, options.drive_weight, 1 / ENERGY_SHARE)
    belief = problem.believing(belief, model.inertial_belief - model.inertial_locked)
    doubt = np.maximum(information.rms_error(model.prior), 0.01 * information.rms_measured)
    weighting = _Weighting(np.maximum(doubt, 1e-9 * doubt.max()), np.ones(equations.count), belief)
    fit = _Fit(model, information, problem, options)
    weighting, solution = fit.reweighted(weighting)
    progress("solving", 0.5)
    parameters = coordinates.physical(solution.x)
    residuals = [samples.tau - equations.predict(parameters, samples) for samples in recordings]
    kept, outliers = without_outliers(recordings, residuals, options.outlier_threshold)
    if outliers.any():
        information = compress(equations, kept)
        fit = replace(fit, information=information)
    fraction = effective_fraction(residuals, [samples.mask for samples in kept])
    weighting, solution = fit.reweighted(replace(weighting, fraction=fraction))
    progress("confidence", 0.9)
    parameters = coordinates.physical(solution.x)
    covariance = coordinates.matrix @ np.linalg.pinv(solution.hessian, hermitian=True) @ coordinates.matrix.T
    triangle, _ = information.whitened(1 / weighting.deviation)
    estimate = Estimate(
        equations=equations,
        parameters=parameters,
        covariance=0.5 * (covariance + covariance.T),
        residual_deviation=weighting.deviation,
        effective_counts=fraction * information.counts,
        base=base_parameters(model.layout, triangle, base_parameters_of_robot(model)),
        train_relative_error=information.relative_error(parameters),
        prior_spread=weighting.belief.spread,
        solution=solution,
        recordings=tuple(samples.name for samples in recordings),
        information=information,
        outliers=outliers,
        delay=delay,
    )
    return stated(estimate, information)


def _classical(
    equations: Equations, recordings: Sequence[Samples], estimator: str, constraints: Constraints | None
) -> LeastSquaresEstimate:
    """Estimate of a classical method, which keeps no constraints."""
    if constraints is not None and any(vars(constraints).values()):
        raise IdentificationError(f"estimator '{estimator}' keeps no constraints; drop them or use consistent")
    return least_squares(equations, recordings, ESTIMATORS[estimator])


@dataclass(frozen=True)
class _Weighting:
    """What decides how data and prior weigh: deviation and independent fraction per channel, and the belief."""

    deviation: Array
    fraction: Array
    belief: Belief


@dataclass(frozen=True)
class _Fit:
    """What stays the same while weights are iterated."""

    model: RobotModel
    information: Information
    problem: Problem
    options: IdentifyOptions

    def reweighted(self, weighting: _Weighting) -> tuple[_Weighting, Solution]:
        """Iterate weights (residual deviation per channel) and the prior's spread to their fixed point."""
        layout, given = self.model.layout, self.options.prior_spread
        coordinates = self.problem.coordinates
        start: Solution | None = None
        for _ in range(_OUTER_ITERATIONS):
            R, z = self.information.whitened(np.sqrt(weighting.fraction) / weighting.deviation)
            R, z = coordinates.normalise(R, z)
            start = solution = self.problem.solve(R, z, weighting.belief, start)
            deviation = _deviation(self.information, coordinates.physical(solution.x))
            spread = given or _evidence_spread(R, solution, layout, weighting.belief)
            change = max(np.max(np.abs(deviation / weighting.deviation - 1)), abs(spread / weighting.belief.spread - 1))
            if change <= _OUTER_TOLERANCE:
                break
            weighting = _Weighting(deviation, weighting.fraction, replace(weighting.belief, spread=spread))
        return weighting, solution


def _evidence_spread(R: Array, solution: Solution, layout: ParameterLayout, belief: Belief) -> float:
    """Spread of the prior under which data and prior agree best (evidence, by MacKay's fixed point).

    The data determines ``nu`` directions of the body parameters; over these the divergence ``D`` from the prior
    has the expectation ``nu * spread^2``. A weak belief in the typical spread decides where the data is silent.
    """
    size = layout.inertial_size
    bodies = slice(0, size)
    curvature = (solution.hessian - R.T @ R)[bodies, bodies]
    covariance = np.linalg.pinv(solution.hessian, hermitian=True)[bodies, bodies]
    determined = np.clip(size - np.sum(covariance * curvature), 0.0, size)
    distance = belief.distance.value(layout.all_bodies(solution.x))
    variance = (distance + _SPREAD_BELIEF * TYPICAL_SPREAD**2) / (determined + _SPREAD_BELIEF)
    return float(np.clip(np.sqrt(variance), 0.05, 5.0))


def _deviation(information: Information, parameters: Array) -> Array:
    """Residual deviation per channel, never so small that a perfect fit divides by nothing."""
    return np.maximum(information.rms_error(parameters), 1e-9 * information.rms_measured.max())
