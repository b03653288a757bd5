"""The SCARA of [Lee2019]_ sec. 4.6.1 with an unknown payload; geometry and limits, not printed there, are ours."""

import numpy as np
import scipy.optimize
from studies.accelerations import expected_squares
from studies.bases import scaling_in

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import (
    PSEUDO_INERTIA_BASIS,
    from_mass_com_inertia,
    from_pseudo_inertia,
    pseudo_inertia,
    transform,
)
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.planning.criterion import Criterion, OptimalityCriterion
from inertid_ros.excitation.planning.measurement_regressor import MeasurementRegressor
from inertid_ros.identification.solvers.coordinates import PULLBACK
from inertid_ros.robot.model import RobotModel, load_model

UPPER, FOREARM = 0.35, 0.30  # m
LIMITS = np.array([2.6, 3.0, 10.0])  # rad, rad/s, rad/s^2
NOISE, SAMPLES, ITERATIONS, DRAWS, STATES = 0.03, 50, 60, 20_000, 1000
MASS, ARM = 4.0, 0.08165  # kg, m; [Lee2019]_ table 4.1
PRIOR = from_mass_com_inertia(4.58, [0.02e-3, FOREARM + 1.94e-3, 0.0], 4.58 * 0.08607**2 * np.eye(3))
PLANAR = np.array([0, 1, 2, 9])  # m, h_x, h_y, I_zz: identifiable parameters of a planar robot
# Angle [rad] and origin [m] of the body-fixed frames in the frame of joint 2; the third is at the payload's centre.
FRAMES = {1: (0.0, (0.0, 0.0)), 2: (np.pi / 4, (0.1, 0.15)), 3: (0.0, (0.0, FOREARM)), 4: (0.0, (-0.2, 0.1))}


def scara() -> RobotModel:
    """Upper arm and a payload at the end of a massless forearm, axes vertical."""

    def link(name: str, mass: float, y: float, inertia: float) -> str:
        return (
            f'<link name="{name}"><inertial><origin xyz="0 {y} 0"/><mass value="{mass}"/><inertia ixx="{inertia}"'
            f' iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )

    def joint(name: str, parent: str, child: str, y: float) -> str:
        return (
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="0 {y} 0"/><axis xyz="0 0 1"/>'
            '<limit lower="-2.6" upper="2.6" velocity="3" effort="50"/></joint>'
        )

    links = '<link name="base"/>' + link("upper", 3.0, UPPER / 2, 0.03) + link("payload", MASS, FOREARM, MASS * ARM**2)
    joints = joint("shoulder", "base", "upper", 0.0) + joint("elbow", "upper", "payload", UPPER)
    return load_model(f'<robot name="scara">{links}{joints}</robot>', RobotOptions(drive_terms=()))


class Study:
    """Criteria of the payload's four parameters in four frames, and optimised motions."""

    def __init__(self) -> None:
        self.model = scara()
        self.rows = MeasurementRegressor(self.model, np.full(2, 1 / NOISE), np.zeros(0))

    def criterion(self, name: str, frame: int) -> Criterion:
        """Condition number under a scaling computed in one of the frames."""
        change = np.array([_seen(unit, frame)[PLANAR] for unit in np.eye(10)[PLANAR]]).T
        prior = _seen(PRIOR, frame)
        L = np.linalg.cholesky(pseudo_inertia(prior))
        root = from_pseudo_inertia(L @ PSEUDO_INERTIA_BASIS @ L.T).T @ np.linalg.inv(np.linalg.cholesky(PULLBACK)).T
        pick = np.eye(10)[PLANAR]
        scaling = scaling_in(name, change, pick, root, prior)
        return Criterion(self.rows, 10 + PLANAR, pick, scaling, OptimalityCriterion("condition"), np.zeros((0, 4)))

    def start(self, seed: int) -> Array:
        """Random positions, velocities and accelerations within the limits ``(3, samples, 2)``."""
        return np.random.default_rng(seed).uniform(-1, 1, (3, SAMPLES, 2)) * LIMITS[:, None, None]

    def optimised(self, criterion: Criterion, start: Array) -> Array:
        """Optimise the samples themselves within their limits."""
        scale = LIMITS[:, None, None]

        def objective(flat: Array) -> tuple[float, Array]:
            excitation = criterion.evaluate(self._motion(flat.reshape(start.shape) * scale))
            found = criterion.gradient(excitation)
            gradient = np.stack([found.position, found.velocity, found.acceleration]) * scale
            return criterion.smooth(excitation), gradient.ravel()

        result = scipy.optimize.minimize(
            objective, (start / scale).ravel(), jac=True, method="L-BFGS-B", bounds=[(-1, 1)] * start.size,
            options={"maxiter": ITERATIONS, "maxcor": 20},
        )  # fmt: skip
        return np.asarray(result.x.reshape(start.shape) * scale, dtype=float)

    def errors(self, motion: Array) -> tuple[float, ...]:
        """RMS errors of least squares.

        Errors are for mass [kg], centre of mass and arm of the inertia [mm] in frame 3, for all parameters in the
        prior's metric, and for acceleration [rad/s^2] at random states within the limits.
        """
        return (*self._payload(motion), self._metric(motion), self._acceleration(motion))

    def _metric(self, motion: Array) -> float:
        scaled = self.criterion("invariant", 1).evaluate(self._motion(motion)).scaled
        return float(np.sqrt(np.trace(np.linalg.inv(scaled.T @ scaled)) / len(PLANAR)))

    def _acceleration(self, motion: Array) -> float:
        scaled = self.criterion("none", 1).evaluate(self._motion(motion)).scaled
        covariance_root = np.linalg.inv(np.linalg.qr(scaled, mode="r"))
        q, v, a = np.random.default_rng(1).uniform(-1, 1, (3, STATES, 2)) * LIMITS[:, None, None]
        plain = self.rows.regressor(MotionSamples(self.rows.chain, q, v, a), 10 + PLANAR) * NOISE
        return float(np.sqrt(np.mean(expected_squares(self.model, q, plain @ covariance_root))))

    def _payload(self, motion: Array) -> tuple[float, ...]:
        information = self.criterion("none", 3).evaluate(self._motion(motion)).scaled
        covariance = np.linalg.inv(information.T @ information)
        true = np.array([MASS, 0.0, 0.0, MASS * ARM**2])
        draws = np.random.default_rng(0).multivariate_normal(true, covariance, DRAWS, method="eigh")
        mass = draws[:, 0]
        arm = np.sqrt(np.maximum(draws[:, 3] / mass, 0.0))
        wrong = (mass - MASS, 1e3 * draws[:, 1] / mass, 1e3 * draws[:, 2] / mass, 1e3 * (arm - ARM))
        return tuple(float(np.sqrt(np.mean(error**2))) for error in wrong)

    def _motion(self, motion: Array) -> MotionSamples:
        return MotionSamples(self.rows.chain, *motion)


def _seen(pi: Array, frame: int) -> Array:
    """Transform parameters of a body from the frame of joint 2 to another frame."""
    angle, origin = FRAMES[frame]
    cos, sin = np.cos(angle), np.sin(angle)
    turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    return transform(pi, turn, -turn @ np.array([*origin, 0.0]))
