"""Equations of momentum: six rows per sample of a floating robot, without torque or acceleration.

The momentum of base and joints is the negative of that of the reaction wheels: ``K x = m`` ([Naveen2019]_ eq. 26).
Linear momentum is zero, so that only the wheels, whose inertia is known, set the scale of the parameters.
"""

from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import TreeJoint

from .equations import Equations, RowWriter
from .momentum_regressor import momentum_regressor

CHANNELS = tuple(f"momentum.{part}_{axis}" for part in ("linear", "angular") for axis in "xyz")
_LINEAR = 3  # of the channels; linear momentum depends on masses and first moments only
_NOISE_SAMPLES = 300  # poses over which noise is averaged
_LEAST_NOISE = 1e-6  # of the fastest rate
_FIRST = 4  # parameters of a body: mass and first moments


class MomentumEquations(Equations):
    """Momentum in the base frame about the base's origin, where that of robot and wheels together is zero.

    The pose of the base does not matter: zero is zero in every frame. Drives are in no equation, and the model is that
    of the bodies alone.
    """

    equation_type = "momentum"
    quantity = ("momentum", "N s or N m s")

    def __init__(self, model: RobotModel) -> None:
        if not model.free:
            raise ModelError(
                f"robot '{model.name}': momentum equations are of a robot that floats; set robot.base to free"
            )
        self.model = model.with_bodies_alone()
        self.channels = CHANNELS
        self.joint_channels = slice(0, 0)
        self.optional = False

    @cached_property
    def columns(self) -> tuple[np.ndarray, ...]:  # type: ignore[override]
        """Masses and first moments of all bodies; for angular momentum also their inertia."""
        every = np.arange(self.model.layout.inertial_size)
        moments = every[every % BODY_PARAMETERS < _FIRST]
        return tuple(moments if channel < _LINEAR else every for channel in range(len(CHANNELS)))

    @cached_property
    def tree(self) -> tuple[TreeJoint, ...]:
        """Bodies, then rotors that turn with the joints."""
        return self.model.rotor_tree

    @property
    def fingerprint(self) -> str:
        """Wheels of other bodies or inertias are other equations."""
        wheels = self.model.wheels
        return f"{self.equation_type} {wheels.bodies} {np.round(wheels.axes, 9).tolist()}"

    def writer(self) -> "MomentumWriter":
        """Writer of all inertial columns."""
        return MomentumWriter(self)

    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, 6)`` momentum of base and joints [N s, N m s]."""
        self.check(samples)
        inertial = parameters[: self.model.layout.inertial_size]
        return np.asarray(self.regressor(samples.q, samples.v) @ inertial)

    def noise(self, samples: Samples) -> Array:
        """Of the measured rates: momentum is linear in them, with the prior's parameters as factors."""
        chosen = np.linspace(0, len(samples) - 1, min(len(samples), _NOISE_SAMPLES)).astype(int)
        q, count = samples.q[chosen], samples.v.shape[1]
        inertial, least = self.model.prior[: self.model.layout.inertial_size], _LEAST_NOISE * np.abs(samples.v).max()
        deviations = np.full(count, least) if samples.noise is None else np.maximum(samples.noise, least)
        out = np.zeros(len(CHANNELS))
        for rate, deviation in enumerate(deviations):
            v = np.zeros((len(chosen), count))
            v[:, rate] = deviation
            out += np.mean((self.regressor(q, v) @ inertial) ** 2, axis=0)
        return out

    def regressor(self, q: Array, v: Array) -> Array:
        """``(k, 6, p)`` regressor in all inertial parameters, from positions ``(k, nq)`` and velocities ``(k, nv)``."""
        gearing = self.model.layout.gearing
        return momentum_regressor(self.tree, v[:, :6], q[:, 7:] @ gearing.T, v[:, 6:] @ gearing.T, self.pose(q))

    def pose(self, q: Array) -> Array | None:
        """``(k, 7)`` of the base, where momentum is expressed in the world frame."""
        return None

    def constant(self, samples: Samples) -> Array | float:
        """``(6, p)`` what is subtracted from the rows of a recording."""
        return 0.0


class MomentumChangeEquations(MomentumEquations):
    """Change of momentum in the world about its origin, whatever constant momentum robot and wheels have together.

    The constant is taken out by subtracting the mean over a recording from both sides. Unlike at zero momentum the
    pose of the base must be known at all samples.
    """

    equation_type = "momentum_change"

    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, 6)`` momentum of base and joints in the world, less its mean [N s, N m s]."""
        momentum = super().predict(parameters, samples)
        return momentum - momentum[samples.usable].mean(axis=0)

    def pose(self, q: Array) -> Array | None:
        """``(k, 7)`` of the base."""
        return q[:, :7]

    def constant(self, samples: Samples) -> Array:
        """``(6, p)`` mean of the rows."""
        return np.asarray(self.regressor(samples.q, samples.v)[samples.usable].mean(axis=0))


class MomentumWriter(RowWriter):
    """All ten parameters of every body: there are few samples and six rows, and nothing to save."""

    def __init__(self, equations: MomentumEquations) -> None:
        self.equations = equations
        self._of: Samples | None = None  # the recording of the constant, which is worked out once
        self._constant: Array | float = 0.0
        self.spans = tuple(slice(0, len(columns) + 1) for columns in equations.columns)
        self.expansions = tuple(np.eye(len(columns)) for columns in equations.columns)

    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        """Fill ``out (6, width, k)`` for ``k`` rows of samples."""
        if self._of is not samples:
            self._of, self._constant = samples, self.equations.constant(samples)
        regressor = self.equations.regressor(samples.q[rows], samples.v[rows]) - self._constant
        for channel, columns in enumerate(self.equations.columns):
            out[channel, : len(columns)] = regressor[:, channel, columns].T
