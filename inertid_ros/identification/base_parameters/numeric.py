"""Numeric base parameters: of a recording, or of the robot at random states."""

import logging

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import r_factor
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.robot.bodies.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .closed_form import closed_form_base_parameters
from .column_selection import choose_dependent, dependence_order, visible_rank
from .kinematic_tree import tidied
from .result import BaseParameters

_log = logging.getLogger(__name__)
_NEGLIGIBLE = 1e-9  # a coefficient below this share of its column is rounding


def base_parameters(layout: ParameterLayout, R: Array, structure: BaseParameters | None = None) -> BaseParameters:
    """Base parameters of a regressor by its R factor.

    The rank is where the singular values, of columns scaled to unit norm, show their first clear gap; a warning is
    logged where none is visible. What a child shares with its parent is regrouped into the parent, as closed-form
    rules do.

    Parameters
    ----------
    layout : ParameterLayout
        Of the columns.
    R : ndarray, shape (k, p)
        R factor, or any matrix with the Gram matrix of the regressor.
    structure : BaseParameters, optional
        Base parameters of the robot itself, see :func:`base_parameters_of_robot`. Given these, the result regroups no
        differently and only drops what the data, on top of the structure, does not show. Without them, a right angle
        rounded in the URDF can pass for a parameter that barely shows.
    """
    if structure is None:
        return _of_columns(layout, R)
    excited = _of_columns(layout, R, structure.independent)
    dependent = np.setdiff1d(np.arange(layout.size), excited.independent)
    regrouped = np.isin(structure.independent, excited.dependent)
    kept = np.zeros((excited.count, structure.count))
    kept[:, ~regrouped], kept[:, regrouped] = np.eye(excited.count), excited.regrouping
    projection = kept @ structure.projection
    return BaseParameters(
        layout, excited.independent, dependent, projection[:, dependent], excited.condition_number, excited.gap
    )


def structural_base_parameters(model: RobotModel, states: int = 0, seed: int = 0) -> BaseParameters:
    """Base parameters of the robot itself, from random states rather than from a recording.

    Rounded right angles in the URDF are taken as right angles, see :func:`~.kinematic_tree.tidy`. The closed form,
    :func:`~.closed_form.closed_form_base_parameters`, gives the same much faster.

    Parameters
    ----------
    states : int, optional
        Number of random states; 0 takes as many as the first joint alone needs for all its columns.
    """
    generator, n = np.random.default_rng(seed), model.joints
    states = states or 12 * len(model.link_names) + 20
    q, v, a = generator.uniform(-np.pi, np.pi, (states, n)), *generator.normal(size=(2, states, model.velocities))
    q[:, model.axes[model.free :, :3].any(axis=1)] /= np.pi
    if model.free:
        quaternions = generator.normal(size=(states, 4))
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
        q = np.hstack([np.zeros((states, 3)), quaternions, q])
    every = np.ones(v.shape, dtype=bool)
    samples = Samples(np.arange(states, dtype=float), q, v, a, np.zeros_like(v), every, every[:, 0], "random states")
    R, _ = compress(tidied(model), [samples]).whitened(np.ones(model.velocities))
    return base_parameters(model.layout, R)


def base_parameters_of_robot(model: RobotModel) -> BaseParameters:
    """Base parameters of the robot itself: in closed form, or numerically where that does not cover a rotor."""
    try:
        return closed_form_base_parameters(model)
    except IdentificationError:
        return structural_base_parameters(model)


def _of_columns(layout: ParameterLayout, R: Array, columns: np.ndarray | None = None) -> BaseParameters:
    """Base parameters of some columns of an R factor; ``dependent`` holds those of ``columns`` that are not kept."""
    columns = np.arange(layout.size) if columns is None else columns
    norms = np.linalg.norm(R[:, columns], axis=0)
    present = norms > 1e-12 * norms.max(initial=0.0)
    used, scale = columns[present], norms[present]
    scaled = r_factor(R[:, used] / scale)
    _, singular, directions = np.linalg.svd(scaled)
    rank, gap = visible_rank(singular)
    null_space = directions[rank:].T
    order = dependence_order(layout)
    local = np.full(layout.size, -1)
    local[used] = np.arange(len(used))
    dropped = choose_dependent(null_space, [int(k) for k in local[order] if k >= 0])
    kept = np.setdiff1d(np.arange(len(used)), dropped)
    mixing = -np.linalg.solve(null_space[dropped].T, null_space[kept].T).T
    mixing[np.abs(mixing) < _NEGLIGIBLE * np.maximum(1.0, np.abs(mixing).max(axis=0, initial=0.0))] = 0.0
    independent = used[kept]
    dependent = np.setdiff1d(columns, independent)
    regrouping = np.zeros((len(independent), len(dependent)))
    regrouping[:, np.searchsorted(dependent, used[dropped])] = mixing * scale[dropped] / scale[kept][:, None]
    condition = float("inf")
    if len(kept):
        weakest = np.linalg.svd(scaled[:, kept], compute_uv=False)
        condition = float(weakest[0] / weakest[-1])
    result = BaseParameters(layout, independent, dependent, regrouping, condition, gap)
    if not result.clear:
        _log.warning(
            "base parameters: no visible gap in the singular values (the widest is a factor %.0f, after %d);"
            " the count is doubtful: record more motion",
            result.gap,
            result.count,
        )
    return result
