"""Regressor of generalized force: ``tau = Y(q, v, a) pi`` for the inertial parameters of every moving body.

Joint torques alone on a fixed base ([Lee2019]_ eq. 3.2.13); on a free one the wrench that moves the whole robot, in the
frame of the base, comes first ([vanDerGaag2024]_ eqs. 10-14).
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE
from inertid_ros.kinematics.body_recursion import PRODUCTS, TRANSLATIONS, BodyRecursion
from inertid_ros.kinematics.tree_kinematics import batches
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import TreeJoint

_BASE_TORQUE = ((slice(3, 6), slice(0, 3)),)  # rows of the torque on a free base, and where their screws stand


def joint_torque_regressor(model: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """Regressor of the rigid bodies' generalized force.

    Parameters
    ----------
    q, v, a : ndarray, shapes (N, nq), (N, nv), (N, nv)
        Position, velocity, acceleration in the model's order.

    Returns
    -------
    ndarray, shape (N, nv, 10 nb)
        Row ``j`` of a sample is zero outside the bodies that velocity ``j`` moves. In memory the samples of one element
        are neighbours.
    """
    regressor = RigidBodyRegressor(model.tree, model.pinocchio.gravity.linear)
    out = np.zeros((model.velocities, model.layout.body_size, len(q)))
    for rows in batches(len(q)):
        regressor.write(q[rows].T, v[rows].T, a[rows].T, out[..., rows])
    return out.transpose(2, 0, 1)


def moved_bodies(model: RobotModel) -> tuple[tuple[int, ...], ...]:
    """For each velocity, the indices of the bodies that it moves, in ascending order."""
    moved: list[list[int]] = [[] for _ in range(model.velocities)]
    for body, joint in enumerate(model.tree):
        for velocity in joint.ancestors:
            moved[velocity].append(body)
    return tuple(map(tuple, moved))


class RigidBodyRegressor:
    """Writes the regressor of batches of samples into arrays of the caller. One object serves one thread.

    The element of velocity ``j`` and a parameter of body ``b`` is the screw of the velocity, seen at the body, times
    the wrench of the unit parameter there.

    Parameters
    ----------
    joints : sequence of TreeJoint
    gravity : ndarray, shape (3,)
        m/s^2 in the root frame, in the world where the first body moves freely.
    columns : sequence of sequence of int, optional
        For each body the parameters to write, **in its frame of** :mod:`inertid_ros.robot.tree`; all ten, in the frames
        of the URDF, if not given.
    base_only : bool
        Never write more than the six rows of a free base.
    world : bool
        Write these in the frame of the world, about its origin; only with ``base_only``.
    """

    def __init__(
        self,
        joints: Sequence[TreeJoint],
        gravity: Array,
        columns: Sequence[Sequence[int]] | None = None,
        base_only: bool = False,
        world: bool = False,
    ) -> None:
        self._joints, self._base_only, self._world = joints, base_only, world
        self._recursion = BodyRecursion(joints, gravity, TRANSLATIONS if base_only else None, world)
        if columns is None:
            columns = [range(BODY_PARAMETERS)] * len(self._joints)
            frames = np.array([joint.turned_parameters for joint in self._joints])
            tables = np.einsum("rcz,bck->brkz", WRENCH_TABLE, frames)
        else:
            tables = np.broadcast_to(WRENCH_TABLE, (len(self._joints), *WRENCH_TABLE.shape))
        self.columns = _slices([len(kept) for kept in columns])
        self._wrenches = [_Wrenches(table, kept) for table, kept in zip(tables, columns, strict=True)]
        self._forces = TRANSLATIONS * self._joints[0].free
        self._runs = [[] if joint.free else list(_runs(joint.ancestors[self._forces : -1])) for joint in joints]

    @property
    def width(self) -> int:
        """Number of columns of all bodies together; those of body ``b`` are ``columns[b]``."""
        return self.columns[-1].stop

    def write(self, q: Array, v: Array, a: Array, out: Array, base_only: bool = False) -> None:
        """Fill ``out (nv, >= width, k)`` from motion ``(nq, k)``, ``(nv, k)``, only where a velocity moves the body.

        With ``base_only`` only the six rows of a free base.
        """
        base_only = base_only or self._base_only
        self._recursion.start(q, v, a)
        for body, (joint, wrenches) in enumerate(zip(self._joints, self._wrenches, strict=True)):
            motions = self._recursion.advance(body)
            mass, first, second = wrenches.of(self._recursion.products(motions))
            screws, block = motions[:, 2:], out[:, self.columns[body]]
            parts = [block[:, columns] for columns in wrenches.columns]
            unit = joint.free and not self._world  # screws of the base are unit vectors
            if self._forces and not unit:
                if parts[0].shape[1]:
                    np.einsum("ijk,ick->jck", screws[3:, :3], mass, out=parts[0][:3])
                np.einsum("ijk,ick->jck", screws[3:, :3], first[:3], out=parts[1][:3])
                parts[2][:3] = 0.0
            for rows, at in _BASE_TORQUE if base_only and not unit else self._runs[body]:
                for part, factors, wrench in (
                    (parts[0], screws[:3, at], mass),
                    (parts[1], screws[:, at], first),
                    (parts[2], screws[3:, at], second),
                ):
                    if part.shape[1]:
                        np.einsum("ijk,ick->jck", factors, wrench, out=part[rows])
            # The body's own screw is a unit vector: its row is a row of the wrenches.
            if unit:
                parts[0][:3], parts[0][3:6] = mass, 0.0
                parts[1][:6] = first
                parts[2][:3], parts[2][3:6] = 0.0, second
            if joint.free or base_only:
                continue
            own = joint.ancestors[-1]
            parts[0][own] = mass[2] if joint.prismatic else 0.0
            parts[1][own] = first[2 if joint.prismatic else 5]
            parts[2][own] = 0.0 if joint.prismatic else second[2]


class _Wrenches:
    """Wrenches of chosen parameters of one body, split into mass (a force), first moments, and inertia (a torque).

    Attributes
    ----------
    columns : tuple of slice
        Which of the chosen ones are masses, first moments, inertias.
    """

    def __init__(self, table: Array, chosen: Sequence[int]) -> None:
        groups = [[c for c in chosen if low <= c < high] for low, high in ((0, 1), (1, 4), (4, BODY_PARAMETERS))]
        parts = [table[:3, groups[0]], table[:, groups[1]], table[3:, groups[2]]]
        self.columns = _slices([len(group) for group in groups])
        self._rows = list(zip(_slices([part.shape[0] * part.shape[1] for part in parts]), parts, strict=True))
        self._table = np.vstack([part.reshape(-1, PRODUCTS) for part in parts])

    def of(self, products: Array) -> list[Array]:
        """``(3, m, k)`` forces of masses, ``(6, h, k)`` wrenches of moments, ``(3, i, k)`` torques of inertias."""
        flat = self._table @ products
        return [flat[rows].reshape(*part.shape[:2], flat.shape[1]) for rows, part in self._rows]


def _slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Neighbouring slices of given sizes."""
    return tuple(slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0)))


def _runs(ancestors: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Rows of neighbouring velocities, and where they stand among the ancestors."""
    start = 0
    for end in range(1, len(ancestors) + 1):
        if end == len(ancestors) or ancestors[end] != ancestors[end - 1] + 1:
            yield slice(ancestors[start], ancestors[end - 1] + 1), slice(start, end)
            start = end
