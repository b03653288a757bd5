"""Pairs of base parameters that the data and the prior together leave correlated."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.identification.assessment.estimate import Estimate

_NOTABLE = 0.9  # below it a pair is as good as apart: either is known to within twice of what it would be alone
_MOST = 10


@dataclass(frozen=True)
class CorrelatedPair:
    """Two base parameters of which the data show a combination better than either.

    Attributes
    ----------
    first, second : str
        Names of the base parameters.
    correlation : float
        Of their errors, -1 to 1.
    """

    first: str
    second: str
    correlation: float


def correlated_pairs(estimate: Estimate) -> tuple[CorrelatedPair, ...]:
    """The most correlated pairs of base parameters, at most ten, the strongest first."""
    base = estimate.base
    covariance = base.projection @ estimate.covariance @ base.projection.T
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(float).tiny))
    correlation = np.clip(covariance / np.outer(deviation, deviation), -1.0, 1.0)
    rows, columns = np.triu_indices(base.count, 1)
    values = correlation[rows, columns]
    order = np.argsort(-np.abs(values), kind="stable")[:_MOST]
    return tuple(
        CorrelatedPair(base.names[rows[k]], base.names[columns[k]], float(values[k]))
        for k in order
        if abs(values[k]) >= _NOTABLE
    )
