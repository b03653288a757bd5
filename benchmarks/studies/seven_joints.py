"""The seven-joint arm of [Lee2019]_ sec. 4.6.2: E-optimal motions under criteria computed in four bases."""

import numpy as np
import scipy.optimize
from studies.accelerations import expected_squares
from studies.bases import scaling_in

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.criterion import Criterion, OptimalityCriterion, Scaling
from inertid_ros.excitation.planning.measurement_regressor import MeasurementRegressor
from inertid_ros.excitation.planning.planning_problem import SizeBounds
from inertid_ros.identification.solvers.coordinates import normalised_coordinates, scaling_matrix
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import PANDA, example_urdf

HARMONICS, OMEGA, DURATION, RATE, NOISE = 5, 0.3 * np.pi, 10.0, 1000.0, 0.1  # values of the source
INSTANTS, ITERATIONS, STATES = 150, 30, 1000  # ours: checked instants, steps, validation states
ACCELERATION = 10.0  # rad/s^2, for validation states
ARMS = {  # in place of the iiwa, which is not available; the last link is light (xArm7) or the hand (Panda)
    "xArm7": ("xarm_description/urdf/xarm7.urdf", {}),
    "Panda": (PANDA, {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02}),
}
BASES = (1, 2, 3, 4)
JOINTS = (slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 7))


class Series:
    """Sines and cosines of all harmonics about the middle of the range, free at their ends ([Lee2019]_ eq. 4.6.62)."""

    kind, duration, size = "fourier", DURATION, 2 * HARMONICS
    breaks = np.array([0.0, DURATION])

    def evaluate(self, t: Array) -> tuple[Array, Array, Array]:
        w = OMEGA * np.arange(1, HARMONICS + 1)
        cos, sin = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
        return np.hstack([cos / w, sin / w]), np.hstack([-sin, cos]), np.hstack([-w * cos, -w * sin])


class Study:
    """Criteria of the arm's base parameters in four bases, and optimised motions."""

    def __init__(self, arm: str, steps: int = ITERATIONS) -> None:
        file, held = ARMS[arm]
        self._steps = steps
        self.model = load_model(example_urdf(file), RobotOptions(locked_joints=held, drive_terms=()))
        self.limits = motion_limits(
            self.model, LimitOptions(position_margin=0.0, velocity_fraction=1.0, default_acceleration=1e3)
        )
        self.middle = 0.5 * (self.limits.lower + self.limits.upper)
        self.rows = MeasurementRegressor(self.model, np.full(7, 1 / NOISE), np.zeros(0))
        self.columns, self.base = self.rows.base_columns(self.limits.lower, self.limits.upper)
        self.prior = perturb(self.model, np.random.default_rng(0)).ravel()
        none = np.zeros(0)
        coordinates = normalised_coordinates(
            self.model.layout, self.prior.reshape(-1, 10), np.zeros((7, 10)), none, none
        )
        self.root = scaling_matrix("metric", coordinates)
        self.changes = self._changes()
        basis = Series()
        self._functions = basis.evaluate((np.arange(INSTANTS) + 0.5) * DURATION / INSTANTS)
        self._size_bounds = SizeBounds(basis, np.linspace(0, DURATION, 400), self.middle, self.limits)

    @property
    def count(self) -> int:
        return len(self.columns)

    def criterion(self, name: str, base: int) -> Criterion:
        """E-optimality under a scaling computed in one of the bases."""
        optimality, no_rows = OptimalityCriterion("e"), np.zeros((0, self.count))
        return Criterion(self.rows, self.columns, self.base, self._scaling(name, base), optimality, no_rows)

    def start(self, seed: int) -> Array:
        """Coefficients of a random motion that touches the limits ``(2 harmonics, 7)``."""
        return self._sized(np.random.default_rng(seed).normal(size=(2 * HARMONICS, 7)))

    def optimised(self, criterion: Criterion, start: Array) -> Array:
        """Coefficients after some steps of descent; all motions keep the limits."""

        def objective(flat: Array) -> tuple[float, Array]:
            shape = flat.reshape(start.shape)
            size, slope = self._size_bounds.size(shape)
            parameters = shape * size
            excitation = criterion.evaluate(self._motion(parameters))
            found = criterion.gradient(excitation)
            parts = (found.position, found.velocity, found.acceleration)
            by = sum(rows.T @ part for rows, part in zip(self._functions, parts, strict=True))
            return criterion.smooth(excitation), (by * size + (by * parameters).sum(axis=0) * slope).ravel()

        result = scipy.optimize.minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self._steps, "maxcor": 20}
        )
        return self._sized(result.x.reshape(start.shape))

    def errors(self, parameters: Array) -> Array:
        """Expected errors of least squares from the motion at the source's rate.

        Parameter error in the metric; RMS errors of torque [N m] and acceleration [rad/s^2] for the source's groups of
        joints at random states; RMS acceleration error over all joints.
        """
        motion = self._motion(parameters)
        rows = np.sqrt(motion.step) * self.rows.regressor(motion, self.columns).reshape(-1, self.count)
        covariance_root = np.linalg.inv(np.linalg.qr(rows, mode="r"))  # covariance = covariance_root covariance_root^T
        inverse = np.linalg.inv(self._scaling("invariant", 1).root)
        parameter = np.sqrt(np.sum((inverse @ covariance_root) ** 2) / self.count)
        torque, acceleration = self._validation(covariance_root)
        groups = [np.sqrt(np.mean(square[:, joints])) for square in (torque, acceleration) for joints in JOINTS]
        return np.array([parameter, *groups, np.sqrt(np.mean(acceleration))])

    def path(self, parameters: Array) -> Array:
        """``(instants, 7)`` positions."""
        return self.middle + self._functions[0] @ parameters

    def _scaling(self, name: str, base: int) -> Scaling:
        change = self.changes[base]
        extended = change.astype(np.longdouble) @ self.base.astype(np.longdouble)
        scaling = scaling_in(name, change, extended, self.root, self.prior)
        return Scaling(np.asarray(scaling.root, dtype=float))

    def _validation(self, covariance_root: Array) -> tuple[Array, Array]:
        """Expected squared errors of torque and of acceleration ``(states, 7)``."""
        rng = np.random.default_rng(1)
        q = rng.uniform(self.limits.lower, self.limits.upper, (STATES, 7))
        v, a = (rng.uniform(-1, 1, (STATES, 7)) * bound for bound in (self.limits.velocity, ACCELERATION))
        plain = self.rows.regressor(MotionSamples(self.rows.chain, q, v, a), self.columns) * NOISE
        torque = plain @ covariance_root
        return np.sum(torque**2, axis=2), expected_squares(self.model, q, torque)

    def _changes(self) -> dict[int, Array]:
        """First base from the singular vectors of a random regressor, further bases as random combinations of it."""
        rng = np.random.default_rng(5)
        q = rng.uniform(self.limits.lower, self.limits.upper, (400, 7))
        every = np.arange(len(self.rows.columns))
        rows = self.rows.regressor(MotionSamples(self.rows.chain, q, *rng.normal(size=(2, 400, 7))), every)
        right = np.linalg.svd(rows.reshape(-1, len(every)), full_matrices=False)[2]
        first = right[: self.count] @ np.linalg.pinv(self.base)
        return {base: first if base == 1 else rng.normal(size=first.shape) @ first for base in BASES}

    def _sized(self, shape: Array) -> Array:
        return np.asarray(shape * self._size_bounds.size(shape)[0], dtype=float)

    def _motion(self, parameters: Array) -> MotionSamples:
        """Samples at the instants; each represents many measurements, since the motion has no higher frequencies."""
        q, v, a = (rows @ parameters for rows in self._functions)
        return MotionSamples(self.rows.chain, q + self.middle, v, a, DURATION * RATE / INSTANTS)
