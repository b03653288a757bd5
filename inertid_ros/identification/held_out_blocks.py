"""Cross-validation on contiguous blocks of the recordings that were fitted, where no other motion was held out.

Information is additive: the rest of the data is the whole without a block, so that every block costs one solve more
and no pass over the samples.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.least_squares import ESTIMATORS
from inertid_ros.core.arrays import Array
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.error_checks import check_errors
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.torque_scale import bodies_as_given
from inertid_ros.identification.assessment.validation import Validation, compared, errors_of_each
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.outliers import without_outliers
from inertid_ros.identification.least_squares.estimators import least_squares
from inertid_ros.identification.prior.constraints import Constraints

from .map_fit import FitData, MapFit

BLOCKS = 5  # the usual number in cross-validation; each refit has four fifths of the data
_LEAST = 10  # usable samples of a block per period of the cutoff that it loses on either side


@one_thread()
def validate_on_blocks(
    estimate: Estimate, recordings: Sequence[Samples], options: IdentifyOptions, constraints: Constraints
) -> Validation | None:
    """Errors on contiguous blocks, each predicted by a fit to all other blocks; None where there is too little data.

    Between a block and the data fitted lies a period of the filter's cutoff, within which samples share their noise.

    Parameters
    ----------
    recordings : sequence of Samples
        Those that were fitted, with the delay of effort removed.
    """
    residuals = [samples.tau - estimate.torque(samples) for samples in recordings]
    kept, _ = without_outliers(estimate.equations.channels, recordings, residuals, options.outlier_threshold)
    blocks = [block for samples in kept for block in _cut(samples, sum(map(_duration, kept)) / BLOCKS)]
    trimmed = [_without_ends(block) for block in blocks]
    if len(blocks) < 2 or any(block.usable.sum() < _LEAST for block in trimmed):
        return None
    information = [compress(estimate.equations, [block]) for block in blocks]
    predictions = []
    for index, block in enumerate(trimmed):
        first, *others = information[:index] + information[index + 1 :]
        rest = blocks[:index] + blocks[index + 1 :]
        parameters = refitted(estimate, rest, sum(others, start=first), options, constraints)
        predictions.append((parameters, block))
    own = errors_of_each(estimate.equations, predictions)
    given = errors_of_each(estimate.equations, [(estimate.prior, block) for block in trimmed])
    typical = bodies_as_given(estimate.layout, estimate.prior, estimate.parameters)
    errors = compared(estimate.equations, typical, trimmed, (own, given))
    return Validation(own, given, check_errors(errors), blocks=len(blocks))


def refitted(
    estimate: Estimate,
    recordings: Sequence[Samples],
    information: Information,
    options: IdentifyOptions,
    constraints: Constraints,
) -> Array:
    """Parameters ``(p,)`` by a part of the data, with the weights of data and prior of the whole.

    Parameters
    ----------
    estimate : Estimate
        By the whole.
    recordings : sequence of Samples
        The part, of which classical estimators see every sample.
    information : Information
        Of the part.

    Raises
    ------
    IdentificationError
        There is no optimum.
    """
    if options.estimator != "consistent":
        return least_squares(estimate.equations, recordings, ESTIMATORS[options.estimator]).parameters
    information = replace(information, earlier=estimate.information.earlier)
    data = FitData(estimate.equations, (), information, prior_spreads=estimate.own_prior_spreads)
    return MapFit.of(data, options, constraints).refitted(estimate)


def _duration(samples: Samples) -> float:
    return float(samples.time[-1] - samples.time[0])


def _cut(samples: Samples, duration: float) -> list[Samples]:
    """Contiguous blocks of about a duration [s] each."""
    return samples.blocks(max(1, round(_duration(samples) / duration)) if duration > 0 else 1)


def _without_ends(block: Samples) -> Samples:
    """The samples of a block that share no noise with its neighbours."""
    gap = 1 / block.cutoff_hz if block.cutoff_hz else 0.0
    inside = (block.time >= block.time[0] + gap) & (block.time <= block.time[-1] - gap)
    rows = np.flatnonzero(inside)
    return block.select(slice(rows[0], rows[-1] + 1)) if len(rows) else block.select(slice(0, 0))
