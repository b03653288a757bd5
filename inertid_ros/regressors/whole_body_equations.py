"""Equations of a whole body: its momentum, or the external wrenches on it; also equations from given matrices.

Equations of momentum have six rows per sample of a floating robot, without torque or acceleration ([Naveen2019]_).
If the total momentum is zero, the momentum of base and joints equals the negative momentum of the reaction wheels,
``K x = m`` (eq. 26). Linear momentum is zero, so that only the known inertia of the wheels sets the scale of the
parameters. Zero momentum is zero in every frame: :class:`MomentumEquations` uses the base frame, which requires no
pose. Momentum other than zero is constant only about a fixed point: :class:`MomentumChangeEquations` uses the origin of
the world.

Motion capture of a person gives the motion of every body segment: ``sum of external wrenches = sum over segments of
Y_b x_b`` ([Lee2019]_ eq. 3.6.3), for any joints between the segments. The equations are the base rows of a floating
robot, computed from segment motion instead of joint angles. Matrices may come from any measurement, without a URDF.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, cross, rotation_matrices
from inertid_ros.core.errors import IdentificationError, ModelError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import WholeRowEquations
from inertid_ros.regressors.rigid_body_regressor import RigidBodyRegressor
from inertid_ros.robot.body_segments import body_segment_model, wrench_frame
from inertid_ros.robot.dynamics import WRENCH_TABLE, wrench_products
from inertid_ros.robot.kinematics import BATCH, TreeJoint, batches, turned_forces
from inertid_ros.robot.model import RobotModel

_LINEAR_CHANNELS = 3  # linear momentum depends on masses and first moments only
_MASS_AND_MOMENTS = 4  # leading parameters of a body
_NOISE_POSES = 300  # poses over which noise is averaged
_MIN_NOISE_RATIO = 1e-6  # noise of a rate, relative to the fastest rate
SegmentMotion = tuple[Array, Array]


def momentum_regressor(tree: Sequence[TreeJoint], twist: Array, q: Array, v: Array, pose: Array | None = None) -> Array:
    """System momentum regressor ``K`` of a tree on a free base ([Naveen2019]_ eqs. 1-12).

    At rest and without gravity, the wrench on the base is a linear function of acceleration. Momentum is the same
    function of velocity, so that the rows are the base rows of the wrench regressor with velocity in place of
    acceleration.

    Parameters
    ----------
    tree : joints of the robot; the first body is the base.
    twist : (N, 6), twist of the base in its own frame, linear [m/s] then angular [rad/s].
    q, v : (N, n), joint positions and velocities.
    pose : ndarray, shape (N, 7), optional
        Pose of the base in the world, x y z [m], qx qy qz qw, for momentum in the world frame, about its origin. By
        default momentum is in the base frame, about the base's origin.

    Returns
    -------
    ndarray, shape (N, 6, 10 nb)
        Linear momentum [N s], then angular [N m s]. The samples of one column are adjacent in memory.
    """
    regressor = RigidBodyRegressor(tree, np.zeros(3), base_only=True, world=pose is not None)
    positions = np.hstack([np.zeros((len(q), 7)) if pose is None else pose, q])
    velocities = np.hstack([twist, v])
    out = np.empty((6, regressor.width, len(q)))
    size = -(-len(q) // max(1, round(len(q) / BATCH)))  # equal batches let the recursion reuse its arrays
    for rows in batches(len(q), max(size, 1)):
        position, velocity = (np.ascontiguousarray(channel[rows].T) for channel in (positions, velocities))
        regressor.write(position, np.zeros_like(velocity), velocity, out[..., rows])
    return out.transpose(2, 0, 1)


class MomentumEquations(WholeRowEquations):
    """Momentum in the base frame, about the base's origin, for zero total momentum of robot and wheels.

    The equations and their model do not contain drives.
    """

    equation_type = "momentum"
    quantity = ("momentum", "N s or N m s")
    channels = tuple(f"momentum.{part}_{axis}" for part in ("linear", "angular") for axis in "xyz")
    optional = False
    in_world = False  # whether momentum is in the world frame, about the world's origin, from the pose of the base

    def __init__(self, model: RobotModel) -> None:
        if not model.free:
            raise ModelError(
                f"robot '{model.name}': momentum equations need a robot that floats; set robot.base to free")
        self.model = model.with_layout(drive_terms=(), couplings=(), terms=())

    @cached_property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Masses and first moments of all bodies; for angular momentum also their inertia."""
        every = np.arange(self.model.layout.inertial_size)
        moments = every[every % BODY_PARAMETERS < _MASS_AND_MOMENTS]
        return (moments,) * _LINEAR_CHANNELS + (every,) * (self.count - _LINEAR_CHANNELS)

    @property
    def fingerprint(self) -> str:
        """Text that also identifies the wheels by their bodies and axes."""
        wheels = self.model.wheels
        return f"{self.equation_type} {wheels.bodies} {np.round(wheels.axes, 9).tolist()}"

    def noise(self, samples: Samples) -> Array:
        """Mean variance of the momentum due to the noise of the measured rates, with the prior parameters."""
        chosen = np.linspace(0, len(samples) - 1, min(len(samples), _NOISE_POSES)).astype(int)
        q, count = samples.q[chosen], samples.v.shape[1]
        inertial = self.model.prior[: self.model.layout.inertial_size]
        min_noise = _MIN_NOISE_RATIO * np.abs(samples.v).max()
        deviations = np.full(count, min_noise) if samples.noise is None else np.maximum(samples.noise, min_noise)
        out = np.zeros(self.count)
        for rate, deviation in enumerate(deviations):
            v = np.zeros((len(chosen), count))
            v[:, rate] = deviation
            out += np.mean((self.regressor(q, v) @ inertial) ** 2, axis=0)
        return out

    def coefficients(self, samples: Samples, rows: slice) -> Array:
        return self.regressor(samples.q[rows], samples.v[rows])

    def regressor(self, q: Array, v: Array) -> Array:
        """``(k, 6, p)`` regressor in all inertial parameters, from positions ``(k, nq)`` and velocities ``(k, nv)``."""
        gearing, pose = self.model.layout.gearing, q[:, :7] if self.in_world else None
        return momentum_regressor(self.model.rotor_tree, v[:, :6], q[:, 7:] @ gearing.T, v[:, 6:] @ gearing.T, pose)


class MomentumChangeEquations(MomentumEquations):
    """Change of momentum in the world frame, about its origin, for any constant momentum of robot and wheels.

    The mean over a recording is subtracted from both sides. The pose of the base must be known at all samples.
    """

    equation_type = "momentum_change"
    in_world = True

    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, 6)`` momentum of base and joints in the world, minus its mean [N s, N m s]."""
        momentum = super().predict(parameters, samples)
        return momentum - momentum[samples.usable].mean(axis=0)

    def constant(self, samples: Samples) -> Array:
        """Mean of the coefficients over the usable samples."""
        return np.asarray(self.regressor(samples.q, samples.v)[samples.usable].mean(axis=0))


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
    def from_matrix(cls, A: Array, b: Array, bodies: RobotModel | Array, names: Sequence[str] = (),
            channels: Sequence[str] = ()) -> tuple["MatrixEquations", Samples]:
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
                f"{samples.name}: these samples belong to other equations; use samples() of these equations")

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


def segment_samples(time: Array, poses: SegmentMotion, twists: SegmentMotion, accelerations: SegmentMotion,
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
