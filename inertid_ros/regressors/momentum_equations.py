"""Equations of momentum: six rows per sample of a floating robot, without torque or acceleration ([Naveen2019]_).

If the total momentum is zero, the momentum of base and joints equals the negative momentum of the reaction wheels,
``K x = m`` (eq. 26). Linear momentum is zero, so that only the known inertia of the wheels sets the scale of the
parameters. Zero momentum is zero in every frame: :class:`MomentumEquations` uses the base frame, which requires no
pose. Momentum other than zero is constant only about a fixed point: :class:`MomentumChangeEquations` uses the origin of
the world.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.robot.kinematics import BATCH, TreeJoint, batches
from inertid_ros.robot.model import RobotModel

from .equations import WholeRowEquations
from .rigid_body_regressor import RigidBodyRegressor

_LINEAR_CHANNELS = 3  # linear momentum depends on masses and first moments only
_MASS_AND_MOMENTS = 4  # leading parameters of a body
_NOISE_POSES = 300  # poses over which noise is averaged
_MIN_NOISE_RATIO = 1e-6  # noise of a rate, relative to the fastest rate


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
