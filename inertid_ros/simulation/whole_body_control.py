"""Whole-body balance of a legged robot along reference movements.

Weighted least squares over all tasks give accelerations, from which contact wrenches and then torques follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import scipy

from inertid_ros.config.simulation import BalanceControlOptions, MovementOptions
from inertid_ros.core.arrays import Array

from .example_robots import Sole

_CONTACT_WEIGHT = 100.0
_CONTACT_HZ = 4.0
_TORSO_WEIGHT = 0.3
_FREE_JOINT_WEIGHT = 0.1
_MOMENT_ARM_M = (0.06, 0.03, 0.05)  # a moment of a sole counts like a force at this distance from its centre
_TANGENTIAL_SHARE = 0.5  # a tangential force costs like a normal force of its size over this share


@dataclass(frozen=True)
class Reference:
    """Reference at one instant, relative to the start: rows are value, first and second derivative.

    Attributes
    ----------
    com : (3, 3), centre of mass in the world [m].
    torso : (3, 3), roll, pitch, yaw of the base [rad].
    joints : (3, n), [rad].
    """

    com: Array
    torso: Array
    joints: Array


class Movement:
    """Cubic movement that rests at each target; before and after the movement, the robot is at its start."""

    def __init__(self, options: MovementOptions, amplitudes: Array, rng: np.random.Generator) -> None:
        """``amplitudes (n,)`` are the largest displacements of the joints to either side [rad]; zero for the legs."""
        ranges = np.concatenate([options.com_m, options.torso_rad, np.minimum(options.joint_rad, amplitudes)])
        targets = rng.uniform(-1.0, 1.0, (options.movements + 1, len(ranges))) * ranges
        if options.one_tilt_at_a_time:
            targets[:, :6] = _one_tilt(targets[:, :6])
        targets[[0, -1]] = 0.0
        times = options.seconds * np.arange(options.movements + 1)
        self._spline = scipy.interpolate.CubicHermiteSpline(times, targets, np.zeros_like(targets))
        self.duration = float(times[-1])

    def at(self, time: float) -> Reference:
        """Reference at a time since the start of the movement [s]."""
        inside = 0.0 <= time < self.duration
        rows = [self._spline(time, order) if inside else np.zeros(self._spline.c.shape[-1]) for order in range(3)]
        table = np.array(rows)
        return Reference(table[:, :3], table[:, 3:6], table[:, 6:])


def _one_tilt(targets: Array) -> Array:
    """Alternate roll and pitch with level targets in between, so that roll and pitch never mix."""
    out, phase = targets.copy(), np.arange(len(targets)) % 4
    out[phase != 1, 3] = out[phase != 3, 4] = 0.0
    return out


class WholeBodyController:
    """Joint torques that track a reference of centre of mass, torso and joints while the soles stay in place.

    Accelerations minimise the weighted errors of all tasks. Contact wrenches on the soles supply the generalized force
    that these accelerations require at the base and at joints without a motor, with little moment and tangential force.
    Inverse dynamics gives the torques of the other joints.

    Parameters
    ----------
    model : free-flyer model of the controller.
    soles : soles in contact with the ground.
    passive : (n,), bool, joints without a motor.
    start : configuration whose centre of mass, torso and joints the references are relative to.
    """

    def __init__(
        self, model: pin.Model, soles: Sequence[Sole], passive: Array, start: Array, options: BalanceControlOptions
    ) -> None:
        self._model, self._data, self._soles, self._options = model, model.createData(), tuple(soles), options
        self._passive, self._start = np.asarray(passive, dtype=bool), np.array(start)
        supporting = supporting_joints(model, soles)
        self._joint_hz = np.where(supporting, options.posture_hz, options.free_joint_hz)
        # Only the legs move the centre of mass.
        self._joint_weight = np.where(supporting, options.posture_weight, _FREE_JOINT_WEIGHT)
        pin.framesForwardKinematics(model, self._data, start)
        self._stance = [sole.pose(model, self._data) for sole in soles]
        self._com = pin.centerOfMass(model, self._data, start).copy()
        self._torso = pin.Quaternion(start[3:7]).toRotationMatrix()
        weights = np.array([_TANGENTIAL_SHARE, _TANGENTIAL_SHARE, 1.0, *_MOMENT_ARM_M])
        self._wrench_cost = np.tile((1.0 / weights) ** 2, len(soles))

    def torque(self, q: Array, v: Array, wanted: Reference) -> Array:
        """Return joint torques ``(n,)`` [N m] at a measured state for the reference ``wanted``."""
        model, data = self._model, self._data
        pin.computeAllTerms(model, data, q, v)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        jacobians = [sole.jacobian(model, data) for sole in self._soles]
        acceleration = self._accelerations(q, v, wanted, jacobians)
        mass = data.M
        needed = mass @ acceleration + data.nle
        stacked = np.vstack(jacobians)
        rows = np.concatenate([np.ones(6, dtype=bool), self._passive])
        weighted = stacked[:, rows] / self._wrench_cost[:, None]
        gram = stacked[:, rows].T @ weighted
        wrench = weighted @ np.linalg.solve(gram + 1e-9 * np.trace(gram) * np.eye(len(gram)), needed[rows])
        torque = (needed - stacked.T @ wrench)[6:] - self._options.joint_damping * np.diag(mass)[6:] * v[6:]
        return np.where(self._passive, 0.0, torque)

    def _accelerations(self, q: Array, v: Array, wanted: Reference, jacobians: list[Array]) -> Array:
        model, data, options = self._model, self._data, self._options
        rows, rhs = [], []

        def task(jacobian: Array, target: Array, weight: float | Array) -> None:
            rows.append(np.reshape(weight, (-1, 1)) * jacobian)
            rhs.append(weight * target)

        for sole, stance, jacobian in zip(self._soles, self._stance, jacobians, strict=True):
            error = pin.log6(sole.pose(model, data).actInv(stance)).vector
            # Acceleration of the sole at zero acceleration of all coordinates.
            drift = pin.getFrameAcceleration(model, data, model.getFrameId(sole.frame), pin.ReferenceFrame.LOCAL)
            drift = sole.placement.actInv(drift).vector
            task(jacobian, _pd(error, -jacobian @ v, _CONTACT_HZ) - drift, _CONTACT_WEIGHT)
        com_jacobian = pin.jacobianCenterOfMass(model, data, q)
        pin.centerOfMass(model, data, q, v, np.zeros(model.nv))
        com_error = self._com + wanted.com[0] - data.com[0]
        com_rate = wanted.com[1] - data.vcom[0]
        task(com_jacobian, wanted.com[2] + _pd(com_error, com_rate, options.com_hz) - data.acom[0], 1.0)
        rotation = pin.Quaternion(q[3:7]).toRotationMatrix()
        target = self._torso @ pin.rpy.rpyToMatrix(*wanted.torso[0])
        turn = pin.log3(rotation.T @ target)
        torso = np.zeros((3, model.nv))
        torso[:, 3:6] = np.eye(3)
        rate = target.T @ self._torso @ wanted.torso[1]  # rates of small roll, pitch, yaw about base axes
        task(torso, wanted.torso[2] + _pd(turn, rate - v[3:6], options.torso_hz), _TORSO_WEIGHT)
        joints = np.zeros((model.nv - 6, model.nv))
        joints[:, 6:] = np.eye(model.nv - 6)
        posture = self._start[7:] + wanted.joints[0] - q[7:]
        task(joints, wanted.joints[2] + _pd(posture, wanted.joints[1] - v[6:], self._joint_hz), self._joint_weight)
        A, b = np.vstack(rows), np.concatenate(rhs)
        return np.asarray(np.linalg.solve(A.T @ A + 1e-8 * np.eye(model.nv), A.T @ b), dtype=float)


def _pd(error: Array, rate: Array, hertz: float | Array) -> Array:
    """Acceleration of a critically damped second-order response."""
    omega = 2 * np.pi * hertz
    return omega**2 * error + 2 * omega * rate


def supporting_joints(model: pin.Model, soles: Sequence[Sole]) -> Array:
    """Return a mask ``(n,)`` of the joints between the base and a sole."""
    out = np.zeros(model.nv - 6, dtype=bool)
    for sole in soles:
        for joint in model.supports[model.frames[model.getFrameId(sole.frame)].parentJoint].tolist():
            if joint > 1:
                out[model.joints[joint].idx_v - 6] = True
    return out
