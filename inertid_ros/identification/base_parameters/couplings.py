"""Drives that turn with several joints: where bodies or other drives make the same torque."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...robot.layout import COUPLING_TERMS, ParameterLayout
from ...robot.parameters import Array
from ..triangular import triangle
from .reach import Equations
from .selection import Choice, regroup


def coupling_columns(layout: ParameterLayout, term: str) -> np.ndarray:
    """``(c,)`` columns of one term of the couplings."""
    first = layout.coupling_start + COUPLING_TERMS.index(term)
    return first + len(COUPLING_TERMS) * np.arange(len(layout.couplings))


class CoupledRotors(NamedTuple):
    """How rotor inertias of coupled drives regroup: among each other, and ``(kept, regrouped)`` into every body."""

    choice: Choice
    mixing: tuple[Array, ...]


def regroup_rotors(equations: Sequence[Equations], choices: Sequence[Choice]) -> CoupledRotors:
    """Rotor inertias of coupled drives that joints feel as they feel the bodies behind them.

    What the equations say of these rotors alone, after elimination of the bodies, decides which are kept.

    Parameters
    ----------
    equations: of every body, on its columns of the layout; choices: of columns of each.
    """
    drives = equations[0].coupled.shape[1]
    alone, shares = [np.zeros((0, drives))], []
    for own, choice in zip(equations, choices, strict=True):
        whole = triangle(np.hstack([own.rows, own.coupled]))
        columns = own.rows.shape[1]
        left, singular, right = np.linalg.svd(whole[:, :columns])
        rank = len(choice.independent)
        alone.append(left[:, rank:].T @ whole[:, columns:])
        wanted = np.zeros((rank, columns))
        wanted[:, choice.independent], wanted[:, choice.dependent] = np.eye(rank), choice.mixing
        shares.append((wanted @ right[:rank].T / singular[:rank]) @ left[:, :rank].T @ whole[:, columns:])
    choice = regroup(np.vstack(alone), list(reversed(range(drives))))
    return CoupledRotors(choice, tuple(share @ choice.null_space for share in shares))


def regroup_friction(layout: ParameterLayout, projection: Array) -> np.ndarray:
    """Write into ``projection`` ``(p, p)`` how friction of coupled drives regroups; returns the columns regrouped.

    Viscous friction of a drive with ratios ``r`` makes the torque ``r r^T v``, so that two drives on the same two
    joints repeat what these joints' own friction does. Coulomb friction repeats only where ratios are parallel.
    """
    lost = []
    for term, shape in (("viscous", _squares), ("coulomb", _directions)):
        ratios, columns = layout.coupling_ratios, coupling_columns(layout, term)
        if term in layout.drive_terms:
            ratios = np.vstack([np.eye(len(layout.joints)), ratios])
            columns = np.concatenate([np.arange(layout.size)[layout.drive(term)], columns])
        if not len(layout.couplings):
            continue
        choice = regroup(shape(ratios), list(reversed(range(len(columns)))))
        projection[np.ix_(columns[choice.independent], columns[choice.dependent])] = choice.mixing
        projection[columns[choice.dependent], columns[choice.dependent]] = 0.0
        lost.append(columns[choice.dependent])
    return np.concatenate([np.zeros(0, dtype=int), *lost])


def _squares(ratios: Array) -> Array:
    """``(n^2, k)`` entries of ``r r^T`` of each drive."""
    return np.asarray((ratios[:, :, None] * ratios[:, None, :]).reshape(len(ratios), -1).T)


def _directions(ratios: Array) -> Array:
    """``(k, k)`` size of each drive's ratios in the row of the first drive that has the same direction."""
    sizes = np.linalg.norm(ratios, axis=1)
    cosines = np.abs(ratios @ ratios.T) / np.outer(sizes, sizes)
    first = np.argmax(cosines > 1 - 1e-12, axis=0)
    matrix = np.zeros((len(ratios), len(ratios)))
    matrix[first, np.arange(len(ratios))] = sizes
    return matrix
