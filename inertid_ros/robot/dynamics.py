"""Newton-Euler dynamics of many samples at once, in the frames of the bodies.

Arrays hold the samples along the last axis, so that NumPy and BLAS read them contiguously. Motions are spatial vectors
(linear, angular) at the origin of the body frame of :class:`~inertid_ros.robot.kinematics.TreeJoint`, in its
coordinates.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array, cross, rotate_back, rotation_matrices, skew
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, INERTIA_ELEMENTS

from .kinematics import TreeJoint, batches
from .model import RobotModel

PRODUCTS = 12  # a wrench is linear in d (3), alpha (3), and w w^T as xx, xy, xz, yy, yz, zz
_VELOCITY, _ACCELERATION, _SCREWS = 0, 1, 2
TRANSLATIONS = 3  # translations of a free base, whose screws are left out
_SQUARES = {(0, 0): 6, (0, 1): 7, (0, 2): 8, (1, 1): 9, (1, 2): 10, (2, 2): 11}  # indices of w w^T in the products


class BodyRecursion:
    """Forward recursion of motions from the root outwards. One object serves one thread; it reuses its arrays.

    :class:`~inertid_ros.robot.kinematics.TreeKinematics` gives the same motions in the root frame, in which every screw
    must be multiplied with the columns of every body. Body frames build regressors of whole recordings 6 times as fast
    on an arm of 6 joints, and 8 times as fast on a humanoid of 29 joints.

    Parameters
    ----------
    gravity : (3,), m/s^2 in the root frame; in the world frame if the first body moves freely.
    screws : number of screws to propagate to each body, of the velocities that move the body, from the root on; default
        all. A free base propagates only the screws of its rotations: their angular parts equal the linear parts of the
        screws of its translations, whose angular parts are zero.
    world : whether screws of a free base are about the axes of the world frame instead of the base frame.
    """

    def __init__(self, joints: Sequence[TreeJoint], gravity: Array, screws: int | None = None,
            world: bool = False) -> None:
        self.joints = joints
        self._screws = len(joints) + TRANSLATIONS if screws is None else screws
        self._transforms = [joint.motion_transform for joint in joints]
        self._world = world
        self._free = bool(joints) and joints[0].free
        self._gravity = np.array(gravity, dtype=float)
        self._root = np.zeros((6, 2, 1))
        self._root[:3, _ACCELERATION, 0] = -self._gravity
        self._count = -1
        drivers = [joint.ancestors[-1] - 5 * self._free for joint in joints]
        self._drivers = None if drivers == list(range(len(joints))) else drivers
        self._multipliers = np.array([[joint.multiplier] for joint in joints])
        self._offsets = np.array([[joint.offset] for joint in joints])

    def start(self, q: Array, v: Array, a: Array) -> None:
        """Start a batch of motion ``(nq, k), (nv, k), (nv, k)``; then :meth:`advance` to every body, parents first."""
        count = q.shape[1]
        if count != self._count:
            self._allocate(count)
        if self._free:
            self._start_at_free_base(q, v, a)
            q, v, a = q[6:], v[5:], a[5:]
        if self._drivers:
            q = self._multipliers * q[self._drivers] + self._offsets
            v, a = self._multipliers * v[self._drivers], self._multipliers * a[self._drivers]
        # Now row b belongs to body b.
        self._q, self._v, self._a = q, v, a
        self._sin, self._cos = np.sin(q), np.cos(q)

    def advance(self, body: int) -> Array:
        """Motions ``(6, 2 + s, k)`` at a body: velocity, spatial acceleration less gravity, and ``s`` screws.

        If all screws are propagated, the last screw belongs to the body's own joint. The next batch overwrites the
        array.
        """
        joint, motions = self.joints[body], self._motions[body]
        if joint.free:
            return motions
        before = self._motions[joint.parent] if joint.parent >= 0 else self._start
        width = before.shape[1]
        flat = motions.reshape(6, -1)[:, : width * self._count]
        np.matmul(self._transforms[body], before.reshape(6, -1), out=flat)
        (self._slide if joint.prismatic else self._turn)(body, motions[:, :width])
        if width < motions.shape[1]:
            motions[:, width] = 0.0
            motions[2 if joint.prismatic else 5, width] = joint.multiplier
        return motions

    def products(self, motions: Array) -> Array:
        """``(PRODUCTS, k)`` of :func:`wrench_products` from the motions of one body; the next call overwrites them."""
        z, scratch = self._products, self._scratch[0, 0]
        linear, angular = motions[:3, _VELOCITY], motions[3:, _VELOCITY]
        z[:6] = motions[:, _ACCELERATION]
        for x, y, row in ((1, 2, 0), (2, 0, 1), (0, 1, 2)):  # d = a + w x v
            z[row] += np.multiply(angular[x], linear[y], out=scratch)
            z[row] -= np.multiply(angular[y], linear[x], out=scratch)
        np.multiply(angular[0], angular, out=z[6:9])
        np.multiply(angular[1], angular[1:], out=z[9:11])
        np.multiply(angular[2], angular[2], out=z[11])
        return z

    def to_parent(self, body: int, wrench: Array) -> Array:
        """Move a wrench ``(6, k)`` (force, torque) from the frame of a body to the parent's; overwrites ``wrench``."""
        sin, cos, q = self._sin[body], self._cos[body], self._q[body]
        if self.joints[body].prismatic:
            wrench[3] -= q * wrench[1]
            wrench[4] += q * wrench[0]
        else:
            for x, y in ((0, 1), (3, 4)):
                turned = cos * wrench[x] - sin * wrench[y]
                wrench[y] = sin * wrench[x] + cos * wrench[y]
                wrench[x] = turned
        return np.matmul(self._transforms[body].T, wrench)

    def _start_at_free_base(self, q: Array, v: Array, a: Array) -> None:
        """Set the motions of a free base, including its screws."""
        motions = self._motions[0]
        motions[:, _VELOCITY], motions[:, _ACCELERATION] = v[:6], a[:6]
        if self._gravity.any():
            motions[:3, _ACCELERATION] -= rotate_back(q[3:7].T, np.broadcast_to(self._gravity, (q.shape[1], 3))).T
        if self._screws:
            motions[:, _SCREWS:] = np.eye(6)[:, TRANSLATIONS:, None]
        if self._world:
            turn = np.moveaxis(rotation_matrices(q[3:7].T), 0, -1)
            motions[3:, _SCREWS:] = turn.swapaxes(0, 1)
            place = np.einsum("ijk,ik->jk", turn, q[:3])
            motions[:3, _SCREWS:] = cross(motions[3:, _SCREWS:], place[:, None], axis=0)

    def _turn(self, body: int, motions: Array) -> None:
        """Rotate motions by the joint position, and add the velocity and acceleration of the joint."""
        sin, cos, v, a = self._sin[body], self._cos[body], self._v[body], self._a[body]
        both = motions.reshape(2, 3, *motions.shape[1:])
        x, y = both[:, 0], both[:, 1]
        first, second = (scratch[:, : x.shape[1]] for scratch in (self._scratch, self._scratch2))
        np.multiply(x, sin, out=first)
        np.multiply(y, sin, out=second)
        x *= cos
        y *= cos
        x += second
        y -= first
        y[:, _ACCELERATION] -= np.multiply(x[:, _VELOCITY], v, out=first[:, 0])  # body velocity x joint velocity
        x[:, _ACCELERATION] += np.multiply(y[:, _VELOCITY], v, out=first[:, 0])
        motions[5, _VELOCITY] += v
        motions[5, _ACCELERATION] += a

    def _slide(self, body: int, motions: Array) -> None:
        """Shift motions by the joint position, and add the velocity and acceleration of the joint."""
        q, v, a = self._q[body], self._v[body], self._a[body]
        scratch = self._scratch[0, : motions.shape[1]]
        motions[0] += np.multiply(motions[4], q, out=scratch)
        motions[1] -= np.multiply(motions[3], q, out=scratch)
        acceleration, angular = motions[:, _ACCELERATION], motions[3:, _VELOCITY]
        acceleration[0] += np.multiply(angular[1], v, out=scratch[0])
        acceleration[1] -= np.multiply(angular[0], v, out=scratch[0])
        motions[2, _VELOCITY] += v
        acceleration[2] += a

    def _allocate(self, count: int) -> None:
        translations = TRANSLATIONS * self._free
        widths = [2 + min(len(joint.ancestors) - translations, self._screws) for joint in self.joints]
        self._motions = [np.empty((6, width, count)) for width in widths]
        self._start = np.tile(self._root, (1, 1, count))
        self._scratch, self._scratch2 = np.empty((2, 2, max(widths), count))
        self._products = np.empty((PRODUCTS, count))
        self._count = count


def _wrench_table() -> Array:
    table = np.zeros((6, BODY_PARAMETERS, PRODUCTS))
    alternating = -skew(np.eye(3))  # Levi-Civita symbol
    outer = np.zeros((3, 3, PRODUCTS))  # w w^T
    for (x, y), column in _SQUARES.items():
        outer[x, y, column] = outer[y, x, column] = 1.0
    force, torque = table[:3], table[3:]
    force[:, 0, :3] = np.eye(3)
    force[:, 1:4, 3:6] = np.swapaxes(alternating, 1, 2)
    force[:, 1:4] += outer - np.eye(3)[:, :, None] * np.trace(outer)
    torque[:, 1:4, :3] = alternating
    for column, (x, y) in enumerate(INERTIA_ELEMENTS, start=4):
        unit = np.zeros((3, 3))
        unit[x, y] = unit[y, x] = 1.0
        torque[:, column, 3:6] = unit
        torque[:, column] += np.einsum("ijk,kl,jlz->iz", alternating, unit, outer)
    table.flags.writeable = False
    return table


WRENCH_TABLE = _wrench_table()
"""``(6, 10, 12)``; the wrench (force, torque) at a body's origin is ``sum table[:, c, z] pi_c products_z``
([Lee2019]_ eq. 3.2.4).

Force ``m d + (alpha x + w x w x) h``, torque ``h x d + I alpha + w x I w``, for the acceleration ``d`` of the origin
less gravity, the angular velocity ``w`` and acceleration ``alpha``; see :func:`wrench_products`. With velocities in
place of accelerations, the first six products give the momentum.
"""


def wrench_products(acceleration: Array, angular_acceleration: Array, angular_velocity: Array) -> Array:
    """Products ``(..., 12)`` of a body's motion, in which the wrench on the body is linear.

    The products are acceleration, angular acceleration, and xx, xy, xz, yy, yz, zz of ``w w^T``. Arguments are
    ``(..., 3)`` in the body frame; ``acceleration`` is the acceleration of the frame's origin less gravity [m/s^2].
    """
    w = angular_velocity
    products = np.empty((*w.shape[:-1], PRODUCTS))
    products[..., :3], products[..., 3:6] = acceleration, angular_acceleration
    products[..., 6:9] = w[..., :1] * w
    products[..., 9:11] = w[..., 1:2] * w[..., 1:]
    products[..., 11] = w[..., 2] ** 2
    return products


def rigid_torque(model: RobotModel, bodies: Array, q: Array, v: Array, a: Array) -> Array:
    """Generalized force ``(N, nv)`` [N m or N] of the rigid bodies alone, by the recursive Newton-Euler algorithm.

    Parameters
    ----------
    bodies : (nb, 10), inertial parameters; they need not be physically consistent.
    q, v, a : (N, nq), (N, nv), (N, nv), position, velocity, acceleration in the model's order.
    """
    recursion = BodyRecursion(model.tree, model.pinocchio.gravity.linear, screws=0)
    turned = [joint.turned_parameters @ body for joint, body in zip(model.tree, bodies, strict=True)]
    tables = np.einsum("rcz,bc->brz", WRENCH_TABLE, np.array(turned))
    out = np.empty(np.shape(v))
    for rows in batches(len(out)):
        out[rows] = _torque(recursion, tables, *(np.ascontiguousarray(channel[rows].T) for channel in (q, v, a))).T
    return out


def _torque(recursion: BodyRecursion, tables: Array, q: Array, v: Array, a: Array) -> Array:
    recursion.start(q, v, a)
    wrenches = np.empty((len(tables), 6, v.shape[1]))
    for body, table in enumerate(tables):
        np.matmul(table, recursion.products(recursion.advance(body)), out=wrenches[body])
    torque = np.zeros(v.shape)
    for body in reversed(range(len(tables))):
        joint = recursion.joints[body]
        if joint.free:
            torque[:6] = wrenches[body]
            continue
        torque[joint.ancestors[-1]] += joint.multiplier * wrenches[body, 2 if joint.prismatic else 5]
        if joint.parent >= 0:
            wrenches[joint.parent] += recursion.to_parent(body, wrenches[body])
    return torque
