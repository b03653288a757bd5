"""Normal distribution cut off by bounds: moments, and intervals of single bounded quantities.

A friction that is not below zero, and that the data puts near zero, has no symmetric interval. A quantity that may be
left out of the model altogether is zero or above, each by its probability under the data ([Mitchell1988]_). Moments are
found by expectation propagation ([Minka2001]_; of bounded normal distributions, [Cunningham2011]_).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri, ndtri_exp

from inertid_ros.core.arrays import Array

COVERAGE = 0.95
_SWEEPS, _TOLERANCE = 50, 1e-6
_ZERO_VARIANCE = 1e-6  # of a quantity that is surely zero, in shares of what the data alone leave
_TAIL = -50.0  # deviations below a bound from which a series replaces differences of nearly equal numbers


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal distribution within bounds.

    Attributes
    ----------
    mean, covariance : ndarray, shape (p,) and (p, p)
        Within the bounds.
    centres, deviations : ndarray, shape (k,)
        Of the normal distribution of every bounded quantity by itself, whose part above zero is its distribution within
        the bounds, where it is not zero.
    present : ndarray, shape (k,)
        Probability that the quantity is not zero.
    """

    mean: Array
    covariance: Array
    centres: Array
    deviations: Array
    present: Array

    @property
    def intervals(self) -> Array:
        """``(k, 2)`` shortest intervals of 95 % of every bounded quantity; those at the bound are one-sided."""
        each = zip(self.centres, self.deviations, self.present, strict=True)
        return np.array([_shortest(*own) for own in each]).reshape(-1, 2)


def truncated_normal(
    mean: Array, covariance: Array, rows: Array, shift: Array, absent: Array | None = None
) -> TruncatedNormal:
    """Normal distribution where no element of ``rows @ x + shift`` is below zero.

    Parameters
    ----------
    mean, covariance : ndarray, shape (p,) and (p, p)
        Without the bounds.
    rows, shift : ndarray, shape (k, p) and (k,)
        Of the bounds.
    absent : ndarray, shape (k,), optional
        Of quantities that are zero with even odds before the data: density there of their prior where they are not,
        which is part of the normal distribution. NaN of all others.
    """
    mean, covariance = mean.copy(), covariance.copy()
    absent, present = np.full(len(rows), np.nan) if absent is None else absent, np.ones(len(rows))
    precision, pull = np.zeros(len(rows)), np.zeros(len(rows))
    centres, deviations = np.zeros(len(rows)), np.zeros(len(rows))
    for _ in range(_SWEEPS):
        change = 0.0
        for k, (row, offset) in enumerate(zip(rows, shift, strict=True)):
            along = covariance @ row
            variance, middle = float(row @ along), float(row @ mean) + offset
            if variance <= 0.0:  # fixed by an equality
                centres[k], deviations[k] = middle, 0.0
                continue
            own = 1.0 / max(1.0 / variance - precision[k], 1e-9 / variance)  # without this bound
            centre = own * (middle / variance - pull[k])
            inside, size = _above_zero(centre, own)
            if np.isfinite(absent[k]):
                present[k] = _probability(centre, own, absent[k])
                inside, size = _or_zero(inside, size, present[k], own)
            centres[k], deviations[k] = centre, np.sqrt(own)
            step, turn = 1 / size - 1 / own - precision[k], inside / size - centre / own - pull[k]
            precision[k], pull[k] = precision[k] + step, pull[k] + turn
            gain = 1 / (1 + step * variance)
            mean += (turn - step * middle) * gain * along
            covariance -= step * gain * np.outer(along, along)
            change = max(change, abs(step) * variance)
        if change <= _TOLERANCE:
            break
    return TruncatedNormal(mean, 0.5 * (covariance + covariance.T), centres, deviations, present)


def _above_zero(centre: float, variance: float) -> tuple[float, float]:
    """Mean and variance of the part of a normal distribution above zero."""
    deviation = np.sqrt(variance)
    z = centre / deviation
    if z < _TAIL:
        return deviation / -z * (1 - 2 / z**2), variance / z**2 * (1 - 6 / z**2)
    hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return centre + deviation * hazard, variance * (1 - z * hazard - hazard**2)


def _probability(centre: float, variance: float, density: float) -> float:
    """Probability that a quantity is above zero and not at it, by its prior's density at zero and even odds."""
    z = centre / np.sqrt(variance)
    odds = np.log(density) + float(log_ndtr(z)) + 0.5 * z**2 + 0.5 * np.log(2 * np.pi * variance)
    return float(expit(odds))


def _or_zero(mean: float, variance: float, probability: float, scale: float) -> tuple[float, float]:
    """Mean and variance of a quantity that is zero but for a probability; never quite without variance."""
    whole = probability * (variance + (1 - probability) * mean**2)
    return probability * mean, max(whole, _ZERO_VARIANCE * scale)


def _shortest(centre: float, deviation: float, present: float) -> tuple[float, float]:
    """Shortest interval of :data:`COVERAGE` of the part of a normal distribution above zero, or zero."""
    if deviation == 0.0:
        return max(centre, 0.0), max(centre, 0.0)
    if 1 - present >= COVERAGE:
        return 0.0, 0.0
    z, coverage = centre / deviation, COVERAGE
    if present == 1.0:
        half = float(ndtri(0.5 * (1 + COVERAGE * ndtr(z))))
        if half <= z:
            return centre - half * deviation, centre + half * deviation
    else:
        coverage = 1 - (1 - COVERAGE) / present
    if z < _TAIL:  # exponential there
        return 0.0, -deviation / z * -np.log1p(-coverage)
    return 0.0, centre - deviation * float(ndtri_exp(np.log1p(-coverage) + log_ndtr(z)))
