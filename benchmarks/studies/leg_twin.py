"""Synthetic twin of the leg: true bodies, the motion of the published experiment, and a gallop with a moving base."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.interpolate import make_interp_spline
from support.robots.cheetah_leg import JOINTS, bodies, bounds

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import Ellipsoid, from_pseudo_inertia, is_consistent, pseudo_inertia
from inertid_ros.core.samples import Samples
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.rotors import with_rotors

RATE_HZ = 1000.0
VISCOUS, COULOMB = (0.3, 0.3, 0.3), (3.12, 1.25, 0.95)  # N m s/rad; N m, as published ([Wensing2018]_ sec. VI)
FOOT = np.array([0.0, 0.0, -0.345])  # m, in the frame of the shank
_SHELL = np.array([0.0, 0.045, -0.42]), np.array([0.16, 0.12, 0.12])  # centre and semi-axes [m]
_UNCERTAINTY, _POINTS = 0.5, 10  # [Lee2019]_ sec. B.2, as for fig. 3.12


def true_bodies(leg: dict[str, Any], rng: np.random.Generator) -> Array:
    """Prior with point masses added or removed in the bounding ellipsoids ([Lee2019]_ sec. B.2), ``(6, 10)``."""
    prior = zip(bodies(leg, "prior"), bounds(leg).values(), strict=True)
    return np.array([_perturbed(pi, ellipsoid, rng) for pi, (ellipsoid,) in prior])


def _perturbed(pi: Array, ellipsoid: Ellipsoid, rng: np.random.Generator) -> Array:
    while True:
        direction = rng.normal(size=(_POINTS, 3))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        radius = rng.uniform(size=(_POINTS, 1)) ** (1 / 3)
        points = ellipsoid.centre + radius * direction @ np.linalg.cholesky(ellipsoid.shape).T
        lifted = np.column_stack([points, np.ones(_POINTS)])
        change = pi[0] * rng.uniform(-_UNCERTAINTY, _UNCERTAINTY) * rng.dirichlet(np.ones(_POINTS))
        changed = from_pseudo_inertia(pseudo_inertia(pi) + np.einsum("i,ij,ik->jk", change, lifted, lifted))
        if is_consistent(changed) and ellipsoid.row @ changed > 0:
            return changed


@dataclass(frozen=True)
class Motion:
    """Joint motion, ``(N, 3)`` each, at :data:`RATE_HZ`."""

    q: Array
    v: Array
    a: Array

    def samples(self, tau: Array | None = None) -> Samples:
        every = np.ones(self.q.shape, dtype=bool)
        time = np.arange(len(self.q)) / RATE_HZ
        return Samples(time, self.q, self.v, self.a, np.zeros_like(self.q) if tau is None else tau, every, every[:, 0])

    def __getitem__(self, rows: slice | np.ndarray) -> "Motion":
        return Motion(self.q[rows], self.v[rows], self.a[rows])


def leg_swing(model: RobotModel, seconds: float) -> Motion:
    """Motion of the foot on an ellipsoidal shell below the hip, at the published rates ([Wensing2018]_ sec. VI)."""
    time = np.arange(0.0, seconds, 0.01)
    phi = -12.0 / 1.63 * np.cos(1.63 * time)  # integrals of 12 sin(1.63 t) and 3.4 sin(0.265 t)
    theta = -3.4 / 0.265 * np.cos(0.265 * time)
    on_shell = np.column_stack([np.cos(phi) * np.cos(theta), np.sin(phi) * np.cos(theta), np.sin(theta)])
    target = _SHELL[0] + _SHELL[1] * on_shell
    q, found = np.array([0.0, -0.7, 1.4]), []
    for point in target:
        q = _inverse_kinematics(model.pinocchio, q, point)
        found.append(q)
    spline = make_interp_spline(time, np.array(found), k=5)
    fine = np.arange(0.0, time[-1], 1 / RATE_HZ)
    return Motion(spline(fine), spline.derivative(1)(fine), spline.derivative(2)(fine))


def _inverse_kinematics(kinematics: pin.Model, q: Array, target: Array) -> Array:
    """Joint positions near ``q`` that put the foot on the target."""
    data, shank = kinematics.createData(), kinematics.getJointId(JOINTS[-1])
    for _ in range(50):
        pin.computeJointJacobians(kinematics, data, q)
        foot = data.oMi[shank].act(FOOT)
        jacobian = pin.getJointJacobian(kinematics, data, shank, pin.LOCAL_WORLD_ALIGNED)
        lever = pin.skew(data.oMi[shank].rotation @ FOOT)
        J = jacobian[:3] - lever @ jacobian[3:]
        error = target - foot
        if np.linalg.norm(error) < 1e-10:
            break
        q = q + J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(3), error)
    return q


def gallop(seconds: float) -> tuple[Motion, Array, Array, Array]:
    """Motion of the leg and its body in a gallop of 2.5 strides per second.

    Returns
    -------
    Motion of the leg, and pose ``(N, 7)``, twist and acceleration ``(N, 6)`` of the body in its own frame.
    """
    time = np.arange(0.0, seconds, 1 / RATE_HZ)
    stride = 2 * np.pi * 2.5 * time[:, None] + np.array([0.4, 0.0, 1.1])
    centre, first, second = np.array([[0.05, -0.75, 1.5], [0.08, 0.55, 0.5], [0.03, 0.12, 0.2]])
    speed = 2 * np.pi * 2.5
    leg = Motion(
        centre + first * np.sin(stride) + second * np.sin(2 * stride + 0.6),
        speed * (first * np.cos(stride) + 2 * second * np.cos(2 * stride + 0.6)),
        -(speed**2) * (first * np.sin(stride) + 4 * second * np.sin(2 * stride + 0.6)),
    )
    return leg, *_body_motion(time, speed)


def _body_motion(time: Array, speed: float) -> tuple[Array, Array, Array]:
    """Heave, surge and sway, and roll, pitch and yaw angles, differentiated through Pinocchio's frames."""
    amplitude = np.array([0.03, 0.01, 0.04, 0.06, 0.12, 0.04])  # m, rad
    phase = np.array([0.3, 1.2, 0.0, 2.0, 0.9, 1.7])
    angle = speed * time[:, None] + phase
    x, dx = amplitude * np.sin(angle), amplitude * speed * np.cos(angle)
    ddx = -(speed**2) * x
    pose, twist, acceleration = [], [], []
    for position, rate, second in zip(x, dx, ddx, strict=True):
        rotation = pin.rpy.rpyToMatrix(position[3:])
        map_, slope = (
            pin.rpy.computeRpyJacobian(position[3:], pin.LOCAL),
            pin.rpy.computeRpyJacobianTimeDerivative(position[3:], rate[3:], pin.LOCAL),
        )
        angular = map_ @ rate[3:]
        linear = rotation.T @ rate[:3]
        pose.append(np.concatenate([position[:3], pin.Quaternion(rotation).coeffs()]))
        twist.append(np.concatenate([linear, angular]))
        turning = slope @ rate[3:] + map_ @ second[3:]
        acceleration.append(np.concatenate([rotation.T @ second[:3] - np.cross(angular, linear), turning]))
    return np.array(pose), np.array(twist), np.array(acceleration)


class FloatingLeg:
    """Regressor of the leg on a moving body: wrench on the base and joint torques."""

    def __init__(self, model: RobotModel, urdf: str) -> None:
        kinematics = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        kinematics.gravity.linear = np.array(model.options.gravity)
        self.extended = with_rotors(kinematics, model.layout.rotors)
        gearing = model.layout.gearing
        self.gearing = np.block([[np.eye(6), np.zeros((6, 3))], [np.zeros((len(gearing), 6)), gearing]])

    def regressor(self, leg: Motion, pose: Array, twist: Array, acceleration: Array) -> Array:
        """Rows of force and moment on the base in its frame, then of joint torques ``(N, 9, 60)``."""
        data, gear = self.extended.createData(), self.gearing
        rows = []
        for q, v, a, x, dx, ddx in zip(leg.q, leg.v, leg.a, pose, twist, acceleration, strict=True):
            rates = gear @ np.concatenate([dx, v]), gear @ np.concatenate([ddx, a])
            whole = pin.computeJointTorqueRegressor(self.extended, data, np.append(x, gear[6:, 6:] @ q), *rates)
            rows.append(gear.T @ whole[:, 10:])  # without the ten columns of the base
        return np.array(rows)
