"""How many directions of a spectrum to fit: by generalised cross-validation, by held-out data, or by their variance."""

import logging
from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.data_checks import check_usable
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.residuals import Residuals

from .linear_fit import LinearFit, LinearProblem
from .parameter_spectrum import ParameterSpectrum

_log = logging.getLogger(__name__)


def choose_rank(
    linear_problem: LinearProblem,
    fit: LinearFit,
    recordings: Sequence[Samples],
    held_out: Sequence[Samples] | Information,
) -> tuple[int, Array]:
    """Rank, and the score of every rank ``(r + 1,)`` from zero where it was chosen by one, else none ``(0,)``."""
    rule = linear_problem.options.rank
    if rule == "full":
        return fit.spectrum.count, np.zeros(0)
    if rule == "auto":
        rank = rank_by_variance(fit.variances, linear_problem.options.variance_limit)
        if rank < fit.spectrum.count:
            _log.warning(
                "least squares: %d of %d directions are excited enough and fitted; the others stay at the prior"
                " (reduced identification)",
                rank,
                fit.spectrum.count,
            )
        return rank, np.zeros(0)
    if rule == "variance":
        return rank_by_variance(fit.variances, linear_problem.options.variance_limit), np.zeros(0)
    if rule == "gcv":
        errors = [channel.squared_error(fit.parameters) for channel in fit.information.channels]
        count = float(fit.fraction @ fit.information.counts)
        scores = gcv_scores(fit.spectrum, float(fit.weights**2 @ errors), count)
    elif isinstance(held_out, Information) or held_out:
        held = held_out if isinstance(held_out, Information) else compress(linear_problem.equations, held_out)
        check_usable(linear_problem.equations, held, ["held-out data"])
        scores = held_out_scores(fit.spectrum.solutions, held, fit.weights)
    else:
        scores = cross_validation_scores(linear_problem, fit, recordings)
    return int(np.argmin(scores)), scores


def gcv_scores(spectrum: ParameterSpectrum, squared_error: float, count: float) -> Array:
    """Generalised cross-validation: squared error per equation that new data of the same motion would show.

    Parameters
    ----------
    squared_error : float
        Weighted, of the fit of full rank.
    count : float
        Number of independent equations.

    Returns
    -------
    ndarray, shape (r + 1,)
        Per rank from zero; infinite where there are no more equations than directions.
    """
    dropped = np.concatenate([np.cumsum(spectrum.projections[::-1] ** 2)[::-1], [0.0]])
    freedom = np.maximum(count - np.arange(spectrum.count + 1), 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(count * (squared_error + dropped) / freedom**2)


def held_out_scores(solutions: Array, held_out: Information, weights: Array) -> Array:
    """``(m,)`` weighted squared error per equation of ``(m, p)`` parameter vectors on data they were not fitted to."""
    total = np.zeros(len(solutions))
    for channel, weight in zip(held_out.channels, weights, strict=True):
        extended = np.column_stack([solutions[:, channel.columns], np.full(len(solutions), -1.0)])
        total += weight**2 * np.sum((extended @ channel.r_factor.T) ** 2, axis=1)
    return total / max(int(held_out.counts.sum()), 1)


def cross_validation_scores(linear_problem: LinearProblem, fit: LinearFit, recordings: Sequence[Samples]) -> Array:
    """``(r + 1,)`` mean score over cross-validation sets, each held out in turn."""
    if not recordings:
        raise IdentificationError("least squares: rank held_out has no recordings to split; give held-out data or gcv")
    fitted = tuple(Residuals.of(linear_problem.equations, recordings, fit.parameters).pseudo_values(fit.scale))
    sets = [
        compress(linear_problem.equations, [samples])
        for samples in cross_validation_sets(fitted, linear_problem.options.cross_validation_sets)
    ]
    scores = []
    for index, own in enumerate(sets):
        first, *others = sets[:index] + sets[index + 1 :]
        spectrum = linear_problem.spectrum(sum(others, start=first), fit.weights)
        scores.append(held_out_scores(spectrum.solutions, own, fit.weights))
    return np.asarray(np.average(scores, axis=0, weights=[own.counts.sum() for own in sets]))


def rank_by_variance(variances: Array, limit: float) -> int:
    """Number of directions whose variance is at most a limit ([Lee2019]_ eq. a.4); ``variances`` ascend."""
    return int(np.searchsorted(variances, limit, side="right"))


def cross_validation_sets(recordings: Sequence[Samples], count: int) -> tuple[Samples, ...]:
    """The recordings themselves, or contiguous pieces of the only one, since neighbouring samples are alike."""
    if len(recordings) > 1:
        return tuple(recordings)
    whole = recordings[0]
    if len(whole) < count:
        raise IdentificationError(f"{whole.name}: {len(whole)} samples cannot be cut into {count} pieces; record more")
    bounds = [len(whole) * k // count for k in range(count + 1)]
    return tuple(whole.select(slice(a, b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True))
