"""Identification of a robot from prepared samples: the entry point."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from inertid_ros.config.identification import QUADRATIC_REGULARIZERS, IdentifyOptions
from inertid_ros.core.arrays import one_thread
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate, TermChoice, with_identifiability
from inertid_ros.identification.information.data_checks import check_effort_varies, checked_data
from inertid_ros.identification.information.delay import known_or_estimated_delay, may_be_shifted, without_delay
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.least_squares import LeastSquaresEstimate, least_squares
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .continuation import Continuation, EarlierFit, own_prior_spreads
from .map_fit import FitData, MapFit
from .term_choice import choose_terms
from .term_significance import check_stribeck, with_transition_speeds

_LOAD_ITERATIONS = 2  # friction loads of prior and estimated bodies differ little; two iterations suffice


@dataclass(frozen=True)
class IdentificationProgress:
    """Stage of an identification, and completed fraction (0 to 1) of the whole."""

    stage: str
    fraction: float

    def within(self, begin: float, end: float) -> "IdentificationProgress":
        """Convert to the progress of a longer task, in which this task takes the fractions ``begin`` to ``end``."""
        return replace(self, fraction=begin + (end - begin) * self.fraction)


@dataclass(frozen=True)
class StreamedSamples:
    """Samples of one robot that do not all fit into memory; all passed the same filter.

    Attributes
    ----------
    kept : samples in memory; these alone set the delay, outlier limits, correlation of noise and choice of terms
    further : all other samples, read one recording at a time; these add to parameters and covariance
    """

    kept: Sequence[Samples]
    further: Iterable[Samples]


@one_thread()
def identify(source: RobotModel | Equations, data: Sequence[Samples] | StreamedSamples | Information,
        options: IdentifyOptions | None = None, constraints: Constraints | None = None,
        progress: Callable[[IdentificationProgress], None] = lambda report: None,
        earlier: EarlierFit | None = None) -> Estimate:
    """Identify physically consistent parameters by weighted least squares with a geometric prior.

    The problem is [Lee2019]_ eq. 3.5.43, under the constraints of [Wensing2018]_ eq. 24-25. A channel is one measured
    quantity, such as a joint's torque. Its weight follows from the standard deviation of its residual, iterated to a
    fixed point, and from its number of independent samples. So neither a noisy channel nor a high sampling rate
    dominates. If the options select a classical estimator, :func:`.least_squares` does the fit and returns a
    :class:`.LeastSquaresEstimate`.

    Parameters
    ----------
    source : equations, or a robot for its equations of the configured type
    data : sequence of Samples, StreamedSamples or Information
        Prepared samples of any number of recordings, or their compressed information if memory must not grow with the
        recordings. Information shows neither outliers nor the correlation of residuals: all equations count as
        independent. Options that need every sample do not accept streamed samples, see :func:`takes_further`.
    constraints : constraints beyond physical consistency

    Raises
    ------
    IdentificationError
        No usable samples, no torque, contradicting constraints, no optimum, or only information for options that need
        every sample.
    """
    options, constraints = options or IdentifyOptions(), constraints or Constraints()
    progress(IdentificationProgress("compressing", 0.0))
    equations = equations_of(source, options.equations)
    further: Iterable[Samples] = ()
    if isinstance(data, StreamedSamples):
        further, data = data.further, data.kept
    if further and not takes_further(equations, options):
        raise IdentificationError("identify: these options need every sample; give all samples in memory")
    continuation = None if earlier is None else Continuation(earlier, equations.model, options)
    if continuation is not None:
        equations = equations_of(continuation.prior_model, equations.equation_type)
    prepared, choices = _prepared_data(equations, data, options)
    if continuation is not None:
        prepared = continuation.of(prepared)
    elif options.spread:
        prepared = replace(prepared, prior_spreads=own_prior_spreads(equations.model, options.spread))
    prepared = replace(prepared, further=further)
    progress(IdentificationProgress("solving", 0.2))
    if options.estimator != "consistent":
        classical = _classical(prepared, options, constraints)
        return replace(classical, delay=prepared.removed_delay, term_choices=choices)
    _check_regularizer(options.regularizer, prepared, constraints)
    estimate = _fitted(prepared, options, constraints, progress)
    if prepared.recordings and any(term.uses_load for term in prepared.equations.model.layout.terms):
        for _ in range(_LOAD_ITERATIONS):
            prepared = _with_bodies_of(estimate, prepared)
            estimate = _fitted(prepared, options, constraints, progress)
    progress(IdentificationProgress("confidence", 0.9))
    return with_identifiability(replace(estimate, term_choices=choices))


def takes_further(source: RobotModel | Equations, options: IdentifyOptions) -> bool:
    """Check whether a fit can read samples one recording at a time and keep only their information.

    Some options need every sample: classical estimators use the residual of every sample, and geodesic least squares
    its hyperplane; fitted Stribeck speeds, drive gains and friction under load change the equations of every sample;
    equations of momentum average the noise of their regressor over all samples.
    """
    equations = equations_of(source, options.equations)
    return (
        options.estimator == "consistent"
        and options.regularizer != "geodesic"
        and not options.fit_stribeck_speed
        and not options.drive_gains
        and equations.equation_type == "force"
        and not any(term.uses_load for term in equations.model.layout.terms))


def _fitted(data: FitData, options: IdentifyOptions, constraints: Constraints,
        progress: Callable[[IdentificationProgress], None]) -> Estimate:
    """Fit prepared data, step by step."""
    # Channel weights and prior spread; only the band of the low-pass limits the number of independent samples.
    fit = MapFit.of(data, options, constraints).reweighted()
    if data.recordings:
        progress(IdentificationProgress("solving", 0.5))
        # Remove outliers by their residuals, then count independent samples. Outliers distort the count, so the fit
        # starts again without them.
        fit = fit.without_outliers()
        if fit.outliers is not None and fit.outliers.any():
            fit = fit.with_all_independent().reweighted().without_outliers()
        fit = fit.reweighted()
        if data.further:
            progress(IdentificationProgress("compressing", 0.6))
            fit = fit.with_further().reweighted()
        # Keep Stribeck friction and rotor inertia only if they are significant in the data.
        fit = fit.with_chosen_terms()
        # Count all independent samples at full weight, under the prior spread found so far.
        fit = fit.undiscounted()
    return fit.with_bodies_of_samples().estimate()


def _with_bodies_of(estimate: Estimate, data: FitData) -> FitData:
    """Compute the loads on friction from the estimated bodies, and compress the data again."""
    model = replace(data.equations.model, fitted_bodies=estimate.bodies)
    equations = equations_of(model, data.equations.equation_type)
    information = replace(compress(equations, data.recordings), earlier=data.information.earlier)
    return replace(data, equations=equations, information=information)


def _prepared_data(equations: Equations, data: Sequence[Samples] | Information,
        options: IdentifyOptions) -> tuple[FitData, tuple[TermChoice, ...]]:
    """Check data, remove the delay if configured, and choose user terms."""
    if not isinstance(data, Information):
        equations = with_transition_speeds(equations, data)
    elif options.fit_stribeck_speed:
        raise IdentificationError(
            "identify.fit_stribeck_speed needs every sample, not only information; give recordings or turn it off")
    recordings, information = checked_data(equations, data, "identify")
    if recordings:
        check_effort_varies(equations, recordings)
    if options.fit_stribeck_speed:
        check_stribeck(equations)
    delay, clipped = None, any(samples.command_limits is not None for samples in recordings)
    if options.remove_delay and recordings and may_be_shifted(equations, recordings):
        delay = known_or_estimated_delay(equations, recordings)
    removed = 0.0 if delay is None else delay.removed
    recordings = tuple(without_delay(samples, removed) for samples in recordings)
    choices = choose_terms(equations, recordings)
    chosen = tuple(choice.term for choice in choices if choice.kept)
    if len(chosen) < len(choices):
        equations = equations_of(equations.model.with_layout(terms=chosen), equations.equation_type)
    if removed or clipped or len(chosen) < len(choices):
        information = compress(equations, recordings)
    return FitData(equations, recordings, information, delay), choices


def _check_regularizer(regularizer: str, data: FitData, constraints: Constraints) -> None:
    """Raise IdentificationError if a regularizer does not suit the data or the constraints."""
    if constraints.consistency == "semi" and regularizer not in QUADRATIC_REGULARIZERS:
        raise IdentificationError(
            f"constraints.consistency: semi needs another regularizer than '{regularizer}', which implies full"
            " consistency; set identify.regularizer=euclidean, or constraints.consistency=full")
    if regularizer != "geodesic":
        return
    if constraints != Constraints():
        raise IdentificationError("identify.regularizer: 'geodesic' takes no constraints; drop them or use entropic")
    if not data.recordings or data.information.earlier is not None:
        raise IdentificationError(
            "identify.regularizer: 'geodesic' needs every sample, not only information or an earlier result; give"
            " recordings or use entropic")


def _classical(data: FitData, options: IdentifyOptions, constraints: Constraints) -> LeastSquaresEstimate:
    """Fit by a classical estimator; constraints and an earlier result raise an error."""
    if data.information.earlier is not None:
        raise IdentificationError(
            f"estimator '{options.estimator}' takes no earlier result; leave out the earlier result, or set"
            " identify.estimator=consistent")
    if options.fit_stribeck_speed:
        first = MapFit.of(data, options, Constraints()).reweighted().without_outliers().reweighted()
        data = first.with_chosen_stribeck().data
    if constraints != Constraints():
        raise IdentificationError(f"estimator '{options.estimator}' takes no constraints; drop them or use consistent")
    known = [term.name for term in data.equations.model.layout.terms if term.values]
    if known:
        raise IdentificationError(
            f"robot.terms.{known[0]}.values: estimator '{options.estimator}' cannot keep known parameters; drop them or"
            " use consistent")
    return least_squares(data.equations, data.recordings or data.information, options.least_squares)
