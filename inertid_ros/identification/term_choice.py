"""Choice of user terms: a term stays if it improves the prediction of held-out blocks, or makes bodies more probable.

Recordings are cut into blocks of consecutive samples, compressed once. Least squares with the prior's covariance and
bounds predicts each block from all other blocks, with and without a term; the gain of the term is the share of the
error that it removes. Equations are linear, so a fit of compressed blocks costs milliseconds. If the gains of some
terms are not clearly above zero, the least significant of these terms is removed, until all remaining terms are clear.

Bodies can imitate the torque of some terms: a counterbalance on a shoulder with a horizontal axis acts like the
reversed weight of its link. Motion cannot separate counterbalance and weight, so the term does not improve the
prediction of blocks. But without the term, the link needs an impossible centre of mass. The prior keeps the term,
since bodies with the term are far more probable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import TermChoice
from inertid_ros.identification.information.information import compress, merged
from inertid_ros.identification.information.residuals import band_fraction
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.regressors.equations import Equations

TERM_BLOCKS = 10
_GAIN_CONFIDENCE = 0.995  # one-sided, for a gain above zero: one useless term in two hundred stays
_MIN_LOG_ODDS = 10.0  # least log odds of bodies with a term over bodies without it that keep the term; 2e4 to one
_BLOCK_WEIGHT_ITERATIONS, _BOUND_ITERATIONS = 3, 20


def choose_terms(equations: Equations, recordings: Sequence[Samples]) -> tuple[TermChoice, ...]:
    """Decide on every user term of a robot, in the order of its layout.

    Terms that always stay, and terms with known parameters, are kept without a test.
    """
    terms = equations.model.layout.terms
    choices = [TermChoice(term, True) for term in terms]
    asked = [index for index, term in enumerate(terms) if not (term.always or term.values)]
    blocks = _blocks(recordings) if asked else []
    if len(blocks) >= 3:  # fewer blocks give no scatter
        fits = _BlockFits.from_blocks(equations, blocks)
        limit = float(scipy.special.stdtrit(len(blocks) - 1, _GAIN_CONFIDENCE))
        removed: list[int] = []
        while asked:
            # Gain of each remaining term on the held-out blocks, and its log odds by the prior of bodies.
            with_all, odds_of_all = fits.without(removed)
            doubtful = []
            for index in asked:
                errors, odds = fits.without([*removed, index])
                # Logarithms: blocks of large torque must not hide the gain of all other blocks.
                gains = np.log(errors / with_all)
                error = max(float(np.std(gains, ddof=1)) / np.sqrt(len(gains)), 1e-300)
                gain = float(np.mean(gains))
                ratio, log_odds = gain / error, odds_of_all - odds
                if ratio < limit and (ratio <= -limit or log_odds < _MIN_LOG_ODDS):
                    doubtful.append((ratio, index))
                choices[index] = TermChoice(terms[index], True, -np.expm1(-gain), error * np.exp(-gain), log_odds)
            # Remove the most doubtful term, until all terms are clear.
            if not doubtful:
                break
            _, least = min(doubtful)
            removed.append(least)
            asked.remove(least)
            choices[least] = replace(choices[least], kept=False)
    return tuple(choices)


def _blocks(recordings: Sequence[Samples]) -> list[Samples]:
    """Consecutive samples of about equal numbers, about :data:`TERM_BLOCKS` in all."""
    size = max(sum(map(len, recordings)) / TERM_BLOCKS, 1.0)
    blocks = [block for samples in recordings for block in samples.blocks(max(round(len(samples) / size), 1))]
    return [block for block in blocks if block.mask.any()]


@dataclass(frozen=True)
class _BlockFits:
    """Whitened equations of every block with all terms: error ``|R_k y - z_k|^2 + rest_k``, ``y`` in prior deviations.

    Attributes
    ----------
    rows : (blocks, p, p + 1), R and z of every block
    rest : (blocks,), irreducible squared error of every block
    columns : columns of every term
    lowest : (p,), lower bounds in units of the prior; minus infinity for unbounded parameters
    independent : share of independent samples, as the band of the low-pass limits it
    """

    rows: Array
    rest: Array
    columns: tuple[np.ndarray, ...]
    lowest: Array
    independent: float

    @classmethod
    def from_blocks(cls, equations: Equations, blocks: Sequence[Samples]) -> "_BlockFits":
        layout, parts = equations.model.layout, [compress(equations, [block]) for block in blocks]
        whole = merged(parts)
        coordinates = priors.prior_coordinates(equations.model, whole)
        root = priors.prior_covariance_root(coordinates, priors.TYPICAL_PRIOR_SPREAD)
        prior, level = equations.model.prior, 1e-9 * whole.rms_measured.max()
        deviation = np.maximum(whole.rms_measured, level)
        for _ in range(_BLOCK_WEIGHT_ITERATIONS):
            R, z = whole.whitened(1 / deviation)
            side = np.append(z - R @ prior, np.zeros(layout.size))  # the prior is y = 0 of unit variance
            y = np.linalg.lstsq(np.vstack([R @ root, np.eye(layout.size)]), side)[0]
            deviation = np.maximum(whole.deviation(prior + root @ y), level)
        rows, rest = [], []
        for part in parts:
            R, z = part.whitened(1 / deviation)
            rows.append(np.column_stack([R @ root, z - R @ prior]))
            rest.append(float(part.squared_errors(np.zeros(layout.size)) @ deviation**-2 - z @ z))
        columns = tuple(np.arange(layout.size)[layout.term(index)] for index in range(len(layout.terms)))
        lowest = np.full(layout.size, -np.inf)
        bounded = layout.non_negative
        lowest[bounded] = -prior[bounded] / np.diagonal(root)[bounded]
        return cls(np.array(rows), np.array(rest), columns, lowest, float(band_fraction(blocks).mean()))

    def without(self, removed: Sequence[int]) -> tuple[Array, float]:
        """Fit without some terms: errors of held-out blocks, and log-probability of the whole.

        Returns
        -------
        errors : ndarray, shape (blocks,)
            Squared error of each block under the fit to all other blocks.
        log_probability : float
            Logarithm, up to a constant, of the prior probability near the estimate from all blocks (Laplace's
            approximation).
        """
        size = self.rows.shape[1]
        gone = np.concatenate([np.zeros(0, dtype=int), *(self.columns[index] for index in removed)])
        kept = np.setdiff1d(np.arange(size), gone)
        rows = self.rows[:, :, np.append(kept, size)]
        gram = np.einsum("kij,kil->jl", rows, rows)
        prior, lowest = np.eye(len(kept)), self.lowest[kept]
        errors = []
        for block, rest in zip(rows, self.rest, strict=True):
            others = gram - block.T @ block
            y = _bounded(others[:-1, :-1] + prior, others[:-1, -1], lowest)
            errors.append(rest + float(np.sum((block[:, :-1] @ y - block[:, -1]) ** 2)))
        normal = self.independent * gram[:-1, :-1] + prior
        y = _bounded(normal, self.independent * gram[:-1, -1], lowest)
        return np.array(errors), -0.5 * (float(y @ y) + float(np.linalg.slogdet(normal)[1]))


def _bounded(normal: Array, side: Array, lowest: Array) -> Array:
    """Minimise ``y^T normal y / 2 - side^T y`` with ``y >= lowest`` by fixing violating parameters at their bounds."""
    y, free = np.zeros(len(side)), np.ones(len(side), dtype=bool)
    for _ in range(_BOUND_ITERATIONS):
        held = ~free
        y[held] = lowest[held]
        y[free] = np.linalg.solve(normal[np.ix_(free, free)], side[free] - normal[np.ix_(free, held)] @ y[held])
        below = free & (y < lowest)
        if not below.any():
            break
        free &= ~below
    return np.maximum(y, lowest)
