"""Regrouping of body parameters to the parent, and the columns that remain.

What a joint does not move relative to the parent can be counted to the parent: masses along the axis of a revolute
joint, and all rotational inertia behind a prismatic one (the general rules of [Gautier1990]_). Seven columns of a body
behind a revolute joint and four behind a prismatic one span those of all ten.
Unlike a choice of base parameters this needs no tolerance: it holds to rounding, whatever the geometry.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.tree import TreeJoint

# Indices of parameters in a frame with the joint along z: (m, x, y, z, xx, xy, yy, xz, yz, zz).
_KEPT_TURNING = (1, 2, 4, 5, 7, 8, 9)
_KEPT_SLIDING = (0, 1, 2, 3)
_SEEN_TURNING_ABOUT_FIXED_AXIS = (1, 2, 9)  # about an axis fixed in space, only zz has a torque, and gravity
_SEEN_SLIDING_ALONG_FIXED_AXIS = (0,)
_YY, _XX = 6, 4


@dataclass(frozen=True)
class ParentRegrouping:
    """Fewer columns that span those of all body parameters.

    Attributes
    ----------
    columns : tuple of tuple of int
        For each body the parameters kept, in its frame of :mod:`inertid_ros.robot.tree`.
    matrix : ndarray, shape (c, 10 nb)
        ``Y = Y[kept] @ matrix`` for every motion, ``Y`` the regressor of the parameters in URDF frames.
    """

    columns: tuple[tuple[int, ...], ...]
    matrix: Array


def regroup_to_parents(joints: tuple[TreeJoint, ...]) -> ParentRegrouping:
    """Regrouping of a tree on a fixed or a free base."""
    columns = tuple(_kept(joint) for joint in joints)
    size = sum(len(kept) for kept in columns)
    spans: list[Array] = []  # (size, 10) of each body, in its frame of the tree
    start = 0
    for joint, kept in zip(joints, columns, strict=True):
        span = np.zeros((size, BODY_PARAMETERS))
        span[start + np.arange(len(kept)), kept] = 1.0
        start += len(kept)
        if joint.parent >= 0:
            regrouped = spans[joint.parent] @ joint.parent_parameters
            dropped = [c for c in range(BODY_PARAMETERS) if c not in kept]
            span[:, dropped] = regrouped[:, dropped]
            if not joint.prismatic:  # xx and yy together are invariant, one of them is not
                span[:, _YY] += regrouped[:, _XX] - span[:, _XX]
        spans.append(span)
    turned = [span @ joint.turned_parameters for span, joint in zip(spans, joints, strict=True)]
    return ParentRegrouping(columns, np.hstack(turned))


def _kept(joint: TreeJoint) -> tuple[int, ...]:
    if joint.free:
        return tuple(range(BODY_PARAMETERS))
    if joint.parent < 0:
        return _SEEN_SLIDING_ALONG_FIXED_AXIS if joint.prismatic else _SEEN_TURNING_ABOUT_FIXED_AXIS
    return _KEPT_SLIDING if joint.prismatic else _KEPT_TURNING
