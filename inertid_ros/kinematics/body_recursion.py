"""The same tree walked in the frames of its bodies: motions and screws of whole recordings, for their regressors.

Arrays hold the samples along the last axis, where NumPy and BLAS run through them without gaps. Motions are spatial
vectors (linear, angular) at the origin of the body's frame of :mod:`inertid_ros.robot.tree`, in its coordinates.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross, rotate_back, rotation_matrices
from inertid_ros.robot.tree import TreeJoint

PRODUCTS = 12  # what a wrench is linear in: d (3), alpha (3), and w w^T as xx, xy, xz, yy, yz, zz
_VELOCITY, _ACCELERATION, _SCREWS = 0, 1, 2
TRANSLATIONS = 3  # velocities of a free base whose screws are left out


class BodyRecursion:
    """Forward recursion from the root outwards. One object serves one thread; it uses its arrays again and again.

    :class:`~inertid_ros.kinematics.tree_kinematics.TreeKinematics` gives the same motions in the root frame. This
    second layout stays for its speed: regressors of whole recordings are built 6 times as fast on an arm of 6 joints
    and 8 times as fast on a humanoid of 29 as from the root frame, where every screw is multiplied with the columns of
    every body. Both take the joints' placements and axes from the same :class:`~inertid_ros.robot.tree.TreeJoint`.

    Parameters
    ----------
    joints : sequence of TreeJoint
    gravity : ndarray, shape (3,)
        m/s^2 in the root frame; in the world where the first body moves freely.
    screws : int, optional
        How many screws of the velocities that move a body to take along to it, those next to the root first; all if not
        given. Of a free base only those of its rotations: their angular parts are the linear parts of those of its
        translations, which have no angular ones.
    world : bool
        Screws of the rotations of a free base about the axes of the world through its origin, not those of the base.
    """

    def __init__(
        self, joints: Sequence[TreeJoint], gravity: Array, screws: int | None = None, world: bool = False
    ) -> None:
        self.joints = joints
        self._screws = len(joints) + TRANSLATIONS if screws is None else screws
        self._transforms = [joint.motion_transform for joint in joints]
        self._world = world
        self._free = bool(joints) and joints[0].free
        self._gravity = np.array(gravity, dtype=float)
        self._root = np.zeros((6, 2, 1))
        self._root[:3, _ACCELERATION, 0] = -self._gravity
        self._count = -1

    def start(self, q: Array, v: Array, a: Array) -> None:
        """Take a batch of motion; then call :meth:`advance` for every body, parents first.

        Parameters
        ----------
        q, v, a : ndarray, shapes (nq, k), (nv, k), (nv, k)
            Position, velocity, acceleration in the order of :class:`~inertid_ros.robot.model.RobotModel`.
        """
        count = q.shape[1]
        if count != self._count:
            self._allocate(count)
        if self._free:
            self._start_at_free_base(q, v, a)
            q, v, a = q[6:], v[5:], a[5:]  # so that rows are bodies
        self._q, self._v, self._a = q, v, a
        self._sin, self._cos = np.sin(q), np.cos(q)

    def advance(self, body: int) -> Array:
        """Motions at a body, ``(6, 2 + s, k)``: velocity, spatial acceleration less gravity, screws of its ancestors.

        Where all screws are taken along, the last one is that of the body's own joint. Valid until the next batch.
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
            motions[2 if joint.prismatic else 5, width] = 1.0
        return motions

    def products(self, motions: Array) -> Array:
        """``(PRODUCTS, k)`` of one body: acceleration of its origin, angular acceleration, products of its velocity."""
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
        """A wrench ``(6, k)`` (force, torque) on a body as one on its parent; the inward counterpart of advancing."""
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
        """Motions of a free base; its screws are those of its own frame."""
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
        """Motions in the frame turned by the position, with the joint's own speed and acceleration added."""
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
        y[:, _ACCELERATION] -= np.multiply(x[:, _VELOCITY], v, out=first[:, 0])  # velocity x its own part
        x[:, _ACCELERATION] += np.multiply(y[:, _VELOCITY], v, out=first[:, 0])
        motions[5, _VELOCITY] += v
        motions[5, _ACCELERATION] += a

    def _slide(self, body: int, motions: Array) -> None:
        """Motions in the frame moved by the position, with the joint's own speed and acceleration added."""
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
