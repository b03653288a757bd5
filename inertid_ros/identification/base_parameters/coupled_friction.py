"""Friction of drives that turn with several joints: where it repeats that of other drives."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.layout import COUPLING_TERMS, ParameterLayout

from .column_selection import regroup


def coupling_columns(layout: ParameterLayout, term: str) -> np.ndarray:
    """``(c,)`` columns of one term of the couplings."""
    first = layout.coupling_start + COUPLING_TERMS.index(term)
    return first + len(COUPLING_TERMS) * np.arange(len(layout.couplings))


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
