"""Identification of a robot from prepared samples: the entry point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.least_squares import ESTIMATORS
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.uncertainty import with_identifiability
from inertid_ros.identification.information.data_checks import check_effort_varies, checked_data
from inertid_ros.identification.information.delay import estimate_delay, without_delay
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.least_squares.estimators import LeastSquaresEstimate, least_squares
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .map_fit import FitData, MapFit
from .stribeck_speed import with_fitted_stribeck


@dataclass(frozen=True)
class IdentificationProgress:
    """How far an identification has come.

    Attributes
    ----------
    stage : str
        One word, such as ``solving``.
    fraction : float
        Of the whole, 0 to 1.
    """

    stage: str
    fraction: float

    def within(self, begin: float, end: float) -> "IdentificationProgress":
        """Return the same as part of a longer task, which it fills from fraction ``begin`` to ``end``."""
        return replace(self, fraction=begin + (end - begin) * self.fraction)


@one_thread()
def identify(
    source: RobotModel | Equations,
    data: Sequence[Samples] | Information,
    options: IdentifyOptions | None = None,
    constraints: Constraints | None = None,
    progress: Callable[[IdentificationProgress], None] = lambda report: None,
) -> Estimate:
    """Physically consistent parameters by weighted least squares with a geometric prior.

    The problem is [Lee2019]_ eq. 3.5.43, under the constraints of [Wensing2018]_ eq. 24-25.

    Each channel's equations are weighted by its residual's standard deviation, iterated, and by the number of
    independent samples of its correlated residual, so that neither a noisy channel nor a high sampling rate dominates.
    Estimators other than the default are those of
    :func:`~inertid_ros.identification.least_squares.estimators.least_squares`.

    Parameters
    ----------
    source : RobotModel or Equations
        Equations, or a robot, which stands for its equations of the type that the options name.
    data : sequence of Samples or Information
        Prepared samples, any number of recordings; or their information, where memory must not grow with them.
        Information shows neither outliers nor the correlation of residuals: all equations count as independent.
    options : IdentifyOptions, optional
        Estimator, regularizer, solver and outer loops.
    constraints : Constraints, optional
        Beyond physical consistency.
    progress : callable, optional
        Called at the beginning of every stage.

    Returns
    -------
    Estimate
        A :class:`~inertid_ros.identification.least_squares.estimators.LeastSquaresEstimate` of a classical estimator.

    Raises
    ------
    IdentificationError
        No usable samples, no torque, contradicting constraints, no optimum, or options that need every sample where
        only information is given.
    """
    options = options or IdentifyOptions()
    progress(IdentificationProgress("compressing", 0.0))
    prepared = _prepared_data(equations_of(source, options.equations), data, options)
    progress(IdentificationProgress("solving", 0.2))
    if options.estimator != "consistent":
        return replace(_classical(prepared, options.estimator, constraints), delay=prepared.delay)
    fit = MapFit.of(prepared, options, constraints or Constraints())
    weighting, solution = fit.reweighted(fit.initial_weighting)
    outliers = None
    if prepared.recordings:
        progress(IdentificationProgress("solving", 0.5))
        fit, fraction, outliers = fit.without_outliers(solution)
        weighting, solution = fit.reweighted(replace(weighting, fraction=fraction))
    progress(IdentificationProgress("confidence", 0.9))
    estimate = fit.estimate(weighting, solution)
    return with_identifiability(replace(estimate, outliers=outliers))


def _prepared_data(equations: Equations, data: Sequence[Samples] | Information, options: IdentifyOptions) -> FitData:
    """Checked data, with delay removed and Stribeck speeds fitted where the options ask for it."""
    if isinstance(data, Information):
        for name in ("remove_delay", "fit_stribeck_speed"):
            if getattr(options, name):
                raise IdentificationError(f"identify.{name} needs every sample; give recordings or leave it off")
    recordings, information = checked_data(equations, data, "identify")
    if recordings:
        check_effort_varies(equations, recordings)
    delay = 0.0
    if options.remove_delay:
        delay = estimate_delay(equations, recordings).seconds
        recordings = tuple(without_delay(samples, delay) for samples in recordings)
    if options.fit_stribeck_speed:
        equations = with_fitted_stribeck(equations, recordings)
    if options.remove_delay or options.fit_stribeck_speed:
        information = compress(equations, recordings)
    return FitData(equations, recordings, information, delay)


def _classical(data: FitData, estimator: str, constraints: Constraints | None) -> LeastSquaresEstimate:
    """Estimate of a classical method, which takes no constraints."""
    if constraints is not None and any(vars(constraints).values()):
        raise IdentificationError(f"estimator '{estimator}' takes no constraints; drop them or use consistent")
    return least_squares(data.equations, data.recordings or data.information, ESTIMATORS[estimator])
