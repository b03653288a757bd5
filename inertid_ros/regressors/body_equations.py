"""Equations of bodies without joints, from given matrices or from the measured motion of every body segment.

Matrices may come from any measurement, without a URDF. Motion capture of a person gives the motion of every body
segment: ``sum of external wrenches = sum over segments of Y_b x_b`` ([Lee2019]_ eq. 3.6.3), for any joints between the
segments. The equations are the base rows of a floating robot, computed from segment motion instead of joint angles.
"""

from collections.abc import Sequence

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.rotations import cross, rotation_matrices
from inertid_ros.core.samples import Samples
from inertid_ros.robot.body_segments import body_segment_model, wrench_frame
from inertid_ros.robot.dynamics import WRENCH_TABLE, wrench_products
from inertid_ros.robot.kinematics import turned_forces
from inertid_ros.robot.model import RobotModel

from .equations import WholeRowEquations

SegmentMotion = tuple[Array, Array]


class MatrixEquations(WholeRowEquations):
    """``A x = b`` with a given ``A (N, c, p)``: ``c`` channels at ``N`` instants.

    The samples hold the rows: ``q (N, c p)`` the coefficients, channel after channel, and ``tau (N, c)`` the measured
    side ``b``.
    """

    equation_type = "matrix"
    quantity = ("measured side", "as given")

    def __init__(self, model: RobotModel, channels: Sequence[str]) -> None:
        self.model = model
        self.channels = tuple(channels)

    @classmethod
    def from_matrix(
        cls, A: Array, b: Array, bodies: RobotModel | Array, names: Sequence[str] = (), channels: Sequence[str] = ()
    ) -> tuple["MatrixEquations", Samples]:
        """Equations ``A x = b`` from a matrix, and the samples that hold their rows.

        Parameters
        ----------
        A : ndarray, shape (N, c, p), or (N, p) for a single channel
            Coefficients at ``N`` instants, ten columns of every body in the order of the layout (docs/conventions.md).
        b : (N, c) or (N,), measured side; NaN if not measured. Each channel has its own noise level.
        bodies : ndarray, shape (nb, 10), or RobotModel
            Prior of the bodies, ``p = 10 nb``; or a robot whose layout has ``p`` columns.
        names, channels : names of the ``nb`` bodies and the ``c`` channels.

        Returns
        -------
        equations : MatrixEquations
            For identification, compression and validation; ``equations.samples(A, b)`` makes samples from further data.
        samples : Samples
            Samples of ``A`` and ``b``.

        Raises
        ------
        ModelError, IdentificationError
            Wrong shapes, a body without mass, or numbers that are not finite.
        """
        A, b = _with_channels(A, b)
        if isinstance(bodies, RobotModel):
            model = bodies
        else:
            bodies = np.asarray(bodies, dtype=float).reshape(-1, BODY_PARAMETERS)
            model = body_segment_model("bodies", names or [f"body{k}" for k in range(len(bodies))], bodies)
        count = b.shape[1] if b.ndim == 2 else 0
        equations = cls(model, channels or [f"channel{k}" for k in range(count)])
        return equations, equations.samples(A, b)

    def check(self, samples: Samples) -> None:
        if samples.q.shape[1] != self.count * self.model.layout.size or samples.channels != self.count:
            raise IdentificationError(
                f"{samples.name}: these samples belong to other equations; create them with samples() of these")

    def samples(self, A: Array, b: Array, name: str = "matrix") -> Samples:
        """Samples from further data, with the shapes of :meth:`from_matrix`.

        Raises
        ------
        IdentificationError
            Wrong shapes, or coefficients that are not finite.
        """
        A, b = _with_channels(A, b)
        count, size = len(b), self.model.layout.size
        if A.shape != (count, self.count, size) or b.shape != (count, self.count):
            raise IdentificationError(
                f"{name}: A of shape {A.shape} and b of shape {b.shape} do not fit {self.count} channels and {size}"
                " parameters; give A (N, c, p) and b (N, c)")
        measured = np.isfinite(b)
        if not np.isfinite(A[measured]).all():
            raise IdentificationError(f"{name}: a coefficient is not finite; leave the row out (NaN in b)")
        nothing = np.zeros((count, 0))
        rows = np.where(measured[..., None], A, 0.0).reshape(count, -1)
        return Samples(
            np.arange(count, dtype=float), rows, nothing, nothing, np.where(measured, b, 0.0), measured,
            np.asarray(measured.any(axis=1)), name, measured=measured)

    def coefficients(self, samples: Samples, rows: slice) -> Array:
        return samples.q[rows].reshape(-1, self.count, self.model.layout.size)


def _with_channels(A: Array, b: Array) -> tuple[Array, Array]:
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    if A.ndim == 2:
        A, b = A[:, None], b.reshape(-1, 1)
    return A, b


class BodySegmentEquations(WholeRowEquations):
    """Total external wrench on all segments, in the frame of :func:`wrench_frame`.

    Samples of ``nb`` segments hold poses ``q (N, 7 nb)``, twists and their derivatives ``v, a (N, 6 nb)`` in the frame
    of each segment, as for a free base, and the wrench ``tau (N, 6)``; see :func:`segment_samples`.
    """

    equation_type = "segments"
    quantity = ("wrench", "N or N m")
    channels = tuple(f"{quantity}_{axis}" for quantity in ("force", "torque") for axis in "xyz")

    def __init__(self, model: RobotModel) -> None:
        self.model = model

    def coefficients(self, samples: Samples, rows: slice) -> Array:
        q, v, a = samples.q[rows], samples.v[rows], samples.a[rows]
        gravity, table = np.array(self.model.options.gravity), WRENCH_TABLE.reshape(6 * BODY_PARAMETERS, -1)
        axes, origin = wrench_frame(self.model, q)
        wrenches = []
        for body in range(len(self.model.link_names)):
            pose, twist = q[:, 7 * body : 7 * body + 7], v[:, 6 * body : 6 * body + 6]
            placement, turns = np.tile(np.eye(4), (len(q), 1, 1)), rotation_matrices(pose[:, 3:])
            placement[:, :3, :3], placement[:, :3, 3] = axes.T @ turns, (pose[:, :3] - origin) @ axes
            w, at_origin = twist[:, 3:], a[:, 6 * body : 6 * body + 3] - gravity @ turns
            at_origin = at_origin + cross(w, twist[:, :3])
            products = wrench_products(at_origin, a[:, 6 * body + 3 : 6 * body + 6], w)
            wrench = (products @ table.T).reshape(-1, 6, BODY_PARAMETERS)
            wrenches.append(turned_forces(placement, wrench))
        return np.concatenate(wrenches, axis=2)


def segment_samples(
        time: Array, poses: SegmentMotion, twists: SegmentMotion, accelerations: SegmentMotion,
        wrench: tuple[Array, Array, Array], name: str) -> Samples:
    """Samples for :class:`BodySegmentEquations` from motion capture.

    Parameters
    ----------
    time : (N,), [s].
    poses : (N, nb, 3, 3), (N, nb, 3), rotations of the segments and their origins in the world [m].
    twists, accelerations : (N, nb, 3) each, of the origins and angular, in world axes [m/s, rad/s; m/s^2, rad/s^2].
    wrench : (N, 3) each, total external force [N], its moment about a point [N m], and the point [m], in world axes.
    """
    (rotation, origin), (v, w), (a, alpha) = poses, twists, accelerations
    count, bodies = origin.shape[:2]
    turns = scipy.spatial.transform.Rotation.from_matrix(rotation.reshape(-1, 3, 3))
    quaternions = turns.as_quat().reshape(count, bodies, 4)

    def local(values: Array) -> Array:
        return np.einsum("kbji,kbj->kbi", rotation, values)

    def joined(*parts: Array) -> Array:
        return np.concatenate(parts, axis=2).reshape(count, -1)

    # The rotation of the segment frame also changes the components of the linear velocity in this frame.
    linear = local(a) - np.cross(local(w), local(v))
    force, moment, point = wrench
    tau = np.hstack([force, moment + np.cross(point - origin[:, 0], force)])
    every = np.ones(tau.shape, dtype=bool)
    return Samples(
        time, joined(origin, quaternions), joined(local(v), local(w)), joined(linear, local(alpha)), tau, every,
        every[:, 0], name)
