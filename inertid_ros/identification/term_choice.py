"""Choice of user terms: one stays where other parts of the motion are predicted better, or bodies are likelier with it.

Recordings are cut into blocks of consecutive samples, compressed once. Each block is predicted from all others by least
squares with the prior's covariance, within bounds, with and without a term; equations are linear, so that a fit without
samples costs milliseconds. Of the terms whose gain over the blocks is not clearly above zero the least goes, until none
is left that should.

Bodies can make the torque of some terms: that of a counterbalance on a shoulder whose axis lies flat is the weight of
its link, turned round. No motion separates the two, and no block is predicted better; but the link needs a centre of
mass that it cannot have. Such a term stays by the prior, under which the bodies found with it are far likelier.
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
from inertid_ros.identification.solvers.coordinates import (
    TYPICAL_PRIOR_SPREAD,
    prior_coordinates,
    prior_covariance_root,
)
from inertid_ros.regressors.equations import Equations

TERM_BLOCKS = 10
_GAIN_CONFIDENCE = 0.995  # one-sided, of a gain above zero: one term in two hundred stays that explains nothing
_MIN_LOG_ODDS = 10.0  # of the bodies with a term over those without it; 2e4 to one
_BLOCK_WEIGHT_ITERATIONS, _BOUND_ITERATIONS = 3, 20


def choose_terms(equations: Equations, recordings: Sequence[Samples]) -> tuple[TermChoice, ...]:
    """Choose every user term of a robot, in the order of its layout.

    Terms that are to stay always, and those whose parameters are known, are kept without a test.
    """
    terms = equations.model.layout.terms
    choices = [TermChoice(term, True) for term in terms]
    asked = [index for index, term in enumerate(terms) if not (term.always or term.values)]
    blocks = _blocks(recordings) if asked else []
    if len(blocks) >= 3:  # fewer show no scatter
        fits = _BlockFits.from_blocks(equations, blocks)
        limit = float(scipy.special.stdtrit(len(blocks) - 1, _GAIN_CONFIDENCE))
        removed: list[int] = []
        while asked:
            # Gain of each term that is left over the held-out blocks, and its odds by the bodies.
            with_all, odds_of_all = fits.without(removed)
            doubtful = []
            for index in asked:
                errors, odds = fits.without([*removed, index])
                # By logarithms: blocks of large torque must not hide that all others gain as well.
                gains = np.log(errors / with_all)
                error = max(float(np.std(gains, ddof=1)) / np.sqrt(len(gains)), 1e-300)
                gain = float(np.mean(gains))
                ratio, log_odds = gain / error, odds_of_all - odds
                if ratio < limit and (ratio <= -limit or log_odds < _MIN_LOG_ODDS):
                    doubtful.append((ratio, index))
                choices[index] = TermChoice(terms[index], True, -np.expm1(-gain), error * np.exp(-gain), log_odds)
            # The most doubtful term goes, until none is left.
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
    """Whitened equations of every block in units of the prior, ``|R_k y - z_k|^2 + rest_k``, with all terms.

    Attributes
    ----------
    rows : (blocks, p, p + 1), R and z of every block
    rest : (blocks,), squared error of every block that no parameters remove
    columns : columns of every term
    lowest : (p,), lower bounds in units of the prior; minus infinity of unbounded parameters
    independent : largest independent share of the samples
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
        root = prior_covariance_root(prior_coordinates(equations.model, whole), TYPICAL_PRIOR_SPREAD)
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
            measured = np.array([channel.squared_error(np.zeros(layout.size)) for channel in part.channels])
            rest.append(float(np.sum(measured / deviation**2) - np.sum(z**2)))
        columns = tuple(np.arange(layout.size)[layout.term(index)] for index in range(len(layout.terms)))
        lowest = np.full(layout.size, -np.inf)
        bounded = layout.non_negative
        lowest[bounded] = -prior[bounded] / np.diagonal(root)[bounded]
        return cls(np.array(rows), np.array(rest), columns, lowest, float(band_fraction(blocks).mean()))

    def without(self, removed: Sequence[int]) -> tuple[Array, float]:
        """Errors of held-out blocks, and log-probability of the whole, without some terms.

        Returns
        -------
        errors : ndarray, shape (blocks,)
            Squared error of each block by the fit of all others.
        log_probability : float
            Logarithm of the prior's probability of the estimate by all blocks, up to a constant.
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
    """Minimise ``y^T normal y / 2 - side^T y`` with ``y >= lowest``: parameters below are held there, in turns."""
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
