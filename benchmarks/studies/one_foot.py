"""A humanoid on one foot, motions in dynamic balance on one force plate ([Lee2019]_ sec. 4.6.3)."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.interpolate import make_interp_spline

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.contacts import contact_jacobians
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.example_robots import LeggedRobotDescription, legged_robot
from inertid_ros.simulation.legged_robot import solve_stance

SECONDS, RATE_HZ, CHECK_HZ = 3.0, 300.0, 15.0
CONTROL_POINTS, RANGE_RAD, SMALLER, TRIES = 4, 0.5, 0.93, 200
FORCE_NOISE, MOMENT_NOISE = 0.5, 1.5  # N, N m, as printed in [Lee2019]_


@dataclass(frozen=True)
class OneFoot:
    """The robot, its model with the plate under the sole, and its position on the ground."""

    robot: LeggedRobotDescription
    model: RobotModel

    @property
    def _frame(self) -> int:
        return int(self.model.pinocchio.getFrameId(self.robot.soles[0].frame))

    def pose(self, rng: np.random.Generator, amplitude: float = RANGE_RAD) -> Array:
        """A random configuration in static balance, within the joints' limits.

        Raises
        ------
        RuntimeError
            A pose in balance was not found.
        """
        kinematics, limits = self.model.pinocchio, self.model.limits
        q = pin.neutral(kinematics)
        for name, position in self.robot.start.items():
            q[kinematics.joints[kinematics.getJointId(name)].idx_q] = position
        for _ in range(TRIES):
            wanted = q.copy()
            wanted[7:] = np.clip(
                q[7:] + rng.uniform(-amplitude, amplitude, self.model.joints), limits.lower, limits.upper
            )
            try:
                found = solve_stance(kinematics, self.robot.soles, wanted)
            except ModelError:
                continue  # balance is impossible from this pose
            if ((found[7:] >= limits.lower) & (found[7:] <= limits.upper)).all():
                return found
        raise RuntimeError("one foot: found no pose in balance")

    def motion(self, rng: np.random.Generator) -> Samples:
        """B-spline through poses in balance, at rest at both ends, with the zero-moment point inside the sole."""
        for attempt in range(TRIES):
            amplitude = RANGE_RAD * SMALLER**attempt
            points = np.array([self.pose(rng, amplitude)[7:] for _ in range(CONTROL_POINTS)])
            times = np.linspace(0, SECONDS, CONTROL_POINTS)
            still = [(1, np.zeros(points.shape[1])), (2, np.zeros(points.shape[1]))]
            spline = make_interp_spline(times, points, k=5, bc_type=(still, still))
            if self._balanced(self._samples(spline, CHECK_HZ)):
                return self._samples(spline, RATE_HZ)
        raise RuntimeError("one foot: found no motion in balance")

    def _samples(self, spline, rate: float) -> Samples:
        """Joint motion, and the base motion that keeps the sole in place."""
        time = np.arange(0, SECONDS, 1 / rate)
        joints, rates, accelerations = spline(time), spline(time, 1), spline(time, 2)
        kinematics, data = self.model.pinocchio, self.model.pinocchio.createData()
        q, v, a = [], [], []
        sole = self.robot.soles[0].placement
        for at, speed, acceleration in zip(joints, rates, accelerations, strict=True):
            whole = np.concatenate([np.zeros(6), [1.0], at])
            pin.framesForwardKinematics(kinematics, data, whole)
            base = (data.oMf[self._frame] * sole).inverse()
            whole = np.concatenate([pin.SE3ToXYZQUAT(base), at])
            pin.computeJointJacobians(kinematics, data, whole)
            pin.updateFramePlacements(kinematics, data)
            jacobian = pin.getFrameJacobian(kinematics, data, self._frame, pin.ReferenceFrame.LOCAL)
            twist = np.concatenate([-np.linalg.solve(jacobian[:, :6], jacobian[:, 6:] @ speed), speed])
            pin.forwardKinematics(kinematics, data, whole, twist, np.zeros(kinematics.nv))
            drift = pin.getFrameAcceleration(kinematics, data, self._frame, pin.ReferenceFrame.LOCAL).vector
            lift = -np.linalg.solve(jacobian[:, :6], jacobian[:, 6:] @ acceleration + drift)
            q.append(whole)
            v.append(twist)
            a.append(np.concatenate([lift, acceleration]))
        force = ForceEquations(self.model)
        mask = np.zeros((len(time), self.model.velocities), dtype=bool)
        mask[:, :6] = True
        empty = np.zeros(mask.shape)
        samples = Samples(time, np.array(q), np.array(v), np.array(a), empty, mask, mask[:, 0], measured=mask)
        tau = force.predict(self.model.prior, samples)
        return Samples(time, samples.q, samples.v, samples.a, tau, mask, mask[:, 0], measured=mask)

    def _balanced(self, samples: Samples) -> bool:
        """Whether the sole stays pressed to the ground without tipping."""
        wrench = self.plate_wrench(samples.q, samples.tau)
        contact, turn = self.model.contacts[0], self.robot.plates[0].placement.rotation
        force = wrench[:, :3] @ turn.T
        moment = wrench[:, 3:] @ turn.T + np.cross(contact.plate.xyz, force)
        sole = self.robot.soles[0]
        pressed = force[:, 2] > 0
        forward, left = -moment[:, 1] / force[:, 2], moment[:, 0] / force[:, 2]
        inside = (np.abs(forward) <= sole.length / 2) & (np.abs(left) <= sole.width / 2)
        return bool((pressed & inside).all())

    def plate_wrench(self, q: Array, tau: Array) -> Array:
        """Wrench ``(N, 6)`` in the plate's frame, from generalized force."""
        return np.linalg.solve(contact_jacobians(self.model, q)[:, :6], tau[:, :6, None])[..., 0]

    def noisy(self, samples: Samples, rng: np.random.Generator) -> Samples:
        """Samples with the noise of the plate on the base rows."""
        noise = rng.normal(size=(len(samples), 6)) * np.repeat([FORCE_NOISE, MOMENT_NOISE], 3)
        tau = np.where(samples.mask, samples.tau, 0.0)
        tau[:, :6] += (contact_jacobians(self.model, samples.q)[:, :6] @ noise[..., None])[..., 0]
        return Samples(
            samples.time, samples.q, samples.v, samples.a, tau, samples.mask, samples.usable, measured=samples.measured
        )


def one_foot(model_of) -> OneFoot:
    """The Unitree G1 on its right foot."""
    robot = legged_robot("humanoid")
    return OneFoot(robot, model_of(robot))
