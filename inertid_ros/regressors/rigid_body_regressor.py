"""Regressors of generalized force for rigid bodies and rotors, and regrouping of their columns to parent bodies.

``tau = Y(q, v, a) pi`` for the inertial parameters of every moving body: joint torques on a fixed base ([Lee2019]_ eq.
3.2.13); on a free base the wrench that moves the whole robot, in the frame of the base, comes first
([vanDerGaag2024]_ eqs. 10-14).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.dynamics import PRODUCTS, TRANSLATIONS, WRENCH_TABLE, BodyRecursion
from inertid_ros.robot.kinematics import TreeJoint, batches
from inertid_ros.robot.model import RobotModel

# Parameters that remain after regrouping, in a frame with the joint axis along z: (m, x, y, z, xx, xy, yy, xz, yz, zz).
_TURNING = (1, 2, 4, 5, 7, 8, 9)
_SLIDING = (0, 1, 2, 3)
_TURNING_ABOUT_FIXED_AXIS = (1, 2, 9)  # about an axis fixed in space, only zz and gravity give torque
_SLIDING_ALONG_FIXED_AXIS = (0,)
_YY, _XX = 6, 4
_GRAVITY = (0, 1, 2, 3)  # parameters of a body on which gravity depends
_BASE_TORQUE = ((slice(3, 6), slice(0, 3)),)  # rows of the torque on a free base, and indices of their screws


def joint_torque_regressor(model: RobotModel, q: Array, v: Array, a: Array, gravity: Array | None = None) -> Array:
    """Regressor ``(N, nv, 10 nb)`` of the rigid bodies' generalized force, from motion in the model's order.

    Row ``j`` is zero for bodies that velocity ``j`` does not move. The samples of each element are adjacent in memory.
    ``gravity (3,)`` replaces the model's gravity [m/s^2].
    """
    regressor = RigidBodyRegressor(model.tree, model.pinocchio.gravity.linear if gravity is None else gravity)
    out = np.zeros((model.velocities, model.layout.body_size, len(q)))
    for rows in batches(len(q)):
        regressor.write(q[rows].T, v[rows].T, a[rows].T, out[..., rows])
    return out.transpose(2, 0, 1)


def moved_bodies(model: RobotModel) -> tuple[tuple[int, ...], ...]:
    """Indices of the bodies that each velocity moves, in ascending order."""
    moved: list[list[int]] = [[] for _ in range(model.velocities)]
    for body, joint in enumerate(model.tree):
        for velocity in set(joint.ancestors):
            moved[velocity].append(body)
    return tuple(map(tuple, moved))


class RigidBodyRegressor:
    """Writes the regressor of batches of samples into arrays of the caller. One object serves one thread.

    The element in row ``j`` for a parameter of body ``b`` is the screw of velocity ``j`` times the wrench of the unit
    parameter, both in the frame of body ``b``; for a velocity that moves several joints, the sum over their screws.

    Parameters
    ----------
    gravity : (3,), m/s^2 in the root frame; in the world frame if the first body moves freely.
    columns : sequence of (sequence of int or None), optional
        Parameters to write for each body, in the body frame of :class:`~inertid_ros.robot.kinematics.TreeJoint`. None,
        the default for every body: all ten parameters, in the joint frame of the URDF.
    base_only : whether to write only the six rows of a free base.
    world : whether the rows of a free base are in the world frame, about the world's origin.
    """

    def __init__(
            self, joints: Sequence[TreeJoint], gravity: Array, columns: Sequence[Sequence[int] | None] | None = None,
            base_only: bool = False, world: bool = False) -> None:
        self._joints, self._base_only, self._world = joints, base_only, world
        self._recursion = BodyRecursion(joints, gravity, TRANSLATIONS if base_only else None, world)
        self._wrenches = [
            _Wrenches(np.einsum("rcz,ck->rkz", WRENCH_TABLE, joint.turned_parameters), range(BODY_PARAMETERS))
            if chosen is None else _Wrenches(WRENCH_TABLE, chosen)
            for joint, chosen in zip(joints, columns or [None] * len(joints), strict=True)]
        self.columns = _slices([wrenches.columns[-1].stop for wrenches in self._wrenches])
        self._forces = TRANSLATIONS * self._joints[0].free
        self._runs = [[] if joint.free else list(_runs(joint.ancestors[self._forces : -1])) for joint in joints]
        drivers = [joint.ancestors[-1] for joint in joints]
        self._shared = len(set(drivers)) < len(drivers)

    @property
    def width(self) -> int:
        """Number of columns of all bodies together; body ``b`` has the columns ``columns[b]``."""
        return self.columns[-1].stop

    def write(self, q: Array, v: Array, a: Array, out: Array, base_only: bool = False) -> None:
        """Write the regressor into ``out (nv, >= width, k)``, from motion ``(nq, k)``, ``(nv, k)``.

        Elements of bodies that a velocity does not move are not written, or zero if a velocity moves several joints.
        """
        if self._shared:
            out[:, : self.width] = 0.0
        base_only = base_only or self._base_only
        self._recursion.start(q, v, a)
        for body, (joint, wrenches) in enumerate(zip(self._joints, self._wrenches, strict=True)):
            motions = self._recursion.advance(body)
            if not wrenches.columns[-1].stop:
                continue
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
                        (parts[2], screws[3:, at], second)):
                    if part.shape[1] and self._shared:
                        part[rows] += np.einsum("ijk,ick->jck", factors, wrench)
                    elif part.shape[1]:
                        np.einsum("ijk,ick->jck", factors, wrench, out=part[rows])
            # The screw of the body's own joint is a unit vector, so that its row is a component of the wrenches.
            if unit:
                parts[0][:3], parts[0][3:6] = mass, 0.0
                parts[1][:6] = first
                parts[2][:3], parts[2][3:6] = 0.0, second
            if joint.free or base_only:
                continue
            row = joint.ancestors[-1]
            own = mass[2] if joint.prismatic else 0.0, first[2 if joint.prismatic else 5], (
                0.0 if joint.prismatic else second[2])
            for part, force in zip(parts, own, strict=True):
                part[row] = part[row] + joint.multiplier * force if self._shared else force


class _Wrenches:
    """Wrenches of chosen parameters of one body, split into mass (a force), first moments, and inertia (a torque).

    ``columns`` are the slices of these three groups among the chosen parameters.
    """

    def __init__(self, table: Array, chosen: Sequence[int]) -> None:
        groups = [[c for c in chosen if low <= c < high] for low, high in ((0, 1), (1, 4), (4, BODY_PARAMETERS))]
        parts = [table[:3, groups[0]], table[:, groups[1]], table[3:, groups[2]]]
        self.columns = _slices([len(group) for group in groups])
        self._rows = list(zip(_slices([part.shape[0] * part.shape[1] for part in parts]), parts, strict=True))
        self._table = np.vstack([part.reshape(-1, PRODUCTS) for part in parts])

    def of(self, products: Array) -> list[Array]:
        """Forces of mass ``(3, m, k)``, wrenches of first moments ``(6, h, k)``, torques of inertia ``(3, i, k)``."""
        flat = self._table @ products
        return [flat[rows].reshape(*part.shape[:2], flat.shape[1]) for rows, part in self._rows]


def _slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0)))


def _runs(ancestors: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Yield each range of consecutive velocities, and its range of indices in ``ancestors``."""
    start = 0
    for end in range(1, len(ancestors) + 1):
        if end == len(ancestors) or ancestors[end] != ancestors[end - 1] + 1:
            yield slice(ancestors[start], ancestors[end - 1] + 1), slice(start, end)
            start = end


def further_columns(model: RobotModel, velocity: int) -> np.ndarray:
    """Layout columns of rotors, and of a gravity compensation's links, that act on one row of the generalized force."""
    layout, links, joint = model.layout, len(model.link_names), velocity - 6 * model.free
    columns = []
    for index, rotor in enumerate(model.rotor_tree[links:] if layout.rotors else ()):
        geared = joint >= 0 and layout.gearing[model.joints + index, joint]
        if geared or velocity in rotor.ancestors:
            columns.append(np.arange(layout.size)[layout.body(links + index)])
    moved = moved_bodies(model)[velocity] if layout.compensation else ()
    weights = np.array([layout.rotor_end + BODY_PARAMETERS * body + k for body in moved for k in _GRAVITY], dtype=int)
    return np.concatenate([*columns, weights])


def further_torque(model: RobotModel, bodies: Array, q: Array, v: Array, a: Array) -> Array:
    """``(N, nv)`` generalized force that moves rotors, minus compensated gravity, with parameters ``(k, 10)``."""
    torque, regressors = np.zeros(np.shape(v)), further_regressors(model)
    for rows in batches(len(torque) if regressors else 0):
        motion = [np.ascontiguousarray(channel[rows].T) for channel in (q, v, a)]
        columns = np.concatenate([regressor.of(*motion) for regressor in regressors], axis=1)
        torque[rows] = np.einsum("jck,c->kj", columns, bodies.ravel())
    return torque


def further_regressors(model: RobotModel) -> list["RotorRegressor | CompensationRegressor"]:
    """Regressors of the bodies that follow the links in the layout, in the layout's order."""
    rotors = [RotorRegressor(model)] if model.layout.rotors else []
    return [*rotors, *([CompensationRegressor(model)] if model.layout.compensation else [])]


class RotorRegressor:
    """Regressor of rotors as bodies, for batches of samples ([Wensing2018]_ sec. VI). One object serves one thread.

    Each rotor is a body behind an additional joint, which turns ``ratio`` times as fast as the joint that the rotor
    drives. The force that moves the rotor acts on the joints before its bearings and, times the ratio, on the driven
    joint: ``Y = G^T Y_ext(G q)``.
    """

    def __init__(self, model: RobotModel) -> None:
        rotors = len(model.layout.rotors)
        columns = [()] * len(model.link_names) + [None] * rotors
        self._regressor = RigidBodyRegressor(model.rotor_tree, model.pinocchio.gravity.linear, columns)
        self._gearing, self._joints = model.layout.gearing, model.joints

    def of(self, q: Array, v: Array, a: Array) -> Array:
        """Regressor ``(nv, 10 r, k)`` from motion ``(nq, k)``, ``(nv, k)``."""
        velocities, rotors = len(v), len(self._gearing) - self._joints
        out = np.zeros((velocities + rotors, self._regressor.width, q.shape[1]))
        q, v, a = map(self._geared, (q, v, a))
        self._regressor.write(q, v, a, out)
        out[velocities - self._joints : velocities] += np.einsum(
            "rj,rck->jck", self._gearing[self._joints :], out[velocities:])
        return out[:velocities]

    def _geared(self, motion: Array) -> Array:
        """Motion of base, joints and rotors from the motion of base and joints."""
        base, joints = motion[: len(motion) - self._joints], motion[len(motion) - self._joints :]
        return np.vstack([base, self._gearing @ joints])


class CompensationRegressor:
    """Regressor of the gravity that a controller subtracts from the efforts. One object serves one thread."""

    def __init__(self, model: RobotModel) -> None:
        self._regressor = RigidBodyRegressor(model.tree, model.pinocchio.gravity.linear)

    def of(self, q: Array, *_: Array) -> Array:
        """Regressor ``(nv, 10 nb, k)`` from positions ``(nq, k)``, at rest."""
        still = np.zeros_like(q)
        out = np.zeros((len(q), self._regressor.width, q.shape[1]))
        self._regressor.write(q, still, still, out)
        return -out


@dataclass(frozen=True)
class ParentRegrouping:
    """Reduced columns that span the columns of all body parameters: ``Y = Y[columns] @ matrix`` for every motion.

    Parameters that are constant in the frame of the parent, at any joint position, can be added to the parent: masses
    along the axis of a revolute joint, and all rotational inertia behind a prismatic joint (the general rules of
    [Gautier1990]_). A body behind a revolute joint keeps seven columns, a body behind a prismatic joint four. Unlike
    the choice of base parameters, regrouping needs no tolerance: it is exact to rounding, for any geometry.

    Attributes
    ----------
    columns : remaining parameters of each body, in the body frame of :class:`~inertid_ros.robot.kinematics.TreeJoint`.
    matrix : (c, 10 nb), map from the ``c`` remaining columns to the columns of all parameters in URDF frames.
    """

    columns: tuple[tuple[int, ...], ...]
    matrix: Array


def regroup_to_parents(joints: tuple[TreeJoint, ...]) -> ParentRegrouping:
    """Regroup the parameters of a tree on a fixed or a free base."""
    columns = tuple(_remaining(joint) for joint in joints)
    size = sum(map(len, columns))
    spans: list[Array] = []  # (size, 10) of each body, in the body frame of TreeJoint
    start = 0
    for joint, remaining in zip(joints, columns, strict=True):
        span = np.zeros((size, BODY_PARAMETERS))
        span[start + np.arange(len(remaining)), remaining] = 1.0
        start += len(remaining)
        if joint.parent >= 0:
            regrouped = spans[joint.parent] @ joint.parent_parameters
            dropped = [c for c in range(BODY_PARAMETERS) if c not in remaining]
            span[:, dropped] = regrouped[:, dropped]
            if not joint.prismatic:  # a rotation about z keeps xx + yy, but not xx
                span[:, _YY] += regrouped[:, _XX] - span[:, _XX]
        spans.append(span)
    turned = [span @ joint.turned_parameters for span, joint in zip(spans, joints, strict=True)]
    return ParentRegrouping(columns, np.hstack(turned))


def _remaining(joint: TreeJoint) -> tuple[int, ...]:
    if joint.free:
        return tuple(range(BODY_PARAMETERS))
    if joint.parent < 0:
        return _SLIDING_ALONG_FIXED_AXIS if joint.prismatic else _TURNING_ABOUT_FIXED_AXIS
    return _SLIDING if joint.prismatic else _TURNING
