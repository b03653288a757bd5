"""LeggedRobot: a free-floating robot in MuJoCo on force plates, with a whole-body controller, and its recordings."""

from collections.abc import Sequence

import attrs
import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from inertid_ros.config.simulation import LeggedRobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.data.recording import Recording
from inertid_ros.robot.urdf import parsing

from .example_robots import LeggedRobotDescription, Sole
from .mujoco_model import build_world, import_mujoco, plate_wrench, set_configuration, to_pinocchio
from .sensors import BodySample, BodySensors
from .whole_body_control import Movement, WholeBodyController, supporting_joints

_SETTLE_S = 2.0
_MAX_COM_SHARE = 0.3  # movement of the centre of mass over half the extent of the soles
_MAX_JOINT_SHARE = 0.7  # movement of a joint over the distance to its nearer limit
_FALLEN_M = 0.3  # the robot has fallen if the base is this far below its start
_RECORDED_TAIL_S = 0.2


class LeggedRobot:
    """Physics, controller and sensors of a legged robot.

    The controller uses the model ``controller_urdf`` if given, else the model of the true robot.
    """

    def __init__(
        self, robot: LeggedRobotDescription, options: LeggedRobotOptions | None = None, controller_urdf: str = ""
    ) -> None:
        self.robot, self.options = robot, options or LeggedRobotOptions()
        self._movement_rng, sensor_rng = np.random.default_rng(self.options.seed).spawn(2)
        self.model = free_model(robot.urdf)
        controller_model = free_model(controller_urdf) if controller_urdf else self.model
        self.joint_names = tuple(str(name) for name in self.model.names)[2:]
        passive = np.array([name in robot.passive for name in self.joint_names])
        self._imu = self.model.frames[self.model.getFrameId(robot.imu)].placement
        self._mujoco = import_mujoco()
        self.world = build_world(robot.urdf, self.joint_names, robot.soles, robot.plates, self.options)
        self._data = self._mujoco.MjData(self.world.model)
        self._start = pin.neutral(self.model)
        for name, position in robot.start.items():
            self._start[self.model.joints[self.model.getJointId(name)].idx_q] = position
        self._start = solve_stance(self.model, robot.soles, self._start)
        set_configuration(self.world, self._data, self._start)
        self._controller = WholeBodyController(
            controller_model, robot.soles, passive, self._start, self.options.balance)
        # The largest displacement of each joint: a share of the distance to its nearer limit.
        q, lower, upper = (x[7:] for x in (self._start, self.model.lowerPositionLimit, self.model.upperPositionLimit))
        amplitudes = _MAX_JOINT_SHARE * np.maximum(np.minimum(q - lower, upper - q), 0.0)
        self._amplitudes = np.where(supporting_joints(self.model, robot.soles), 0.0, amplitudes)
        self._draw_movement()
        self._sensors = BodySensors(self.options.sensors, passive, sensor_rng)
        self._every = max(round(self.options.balance.period_s / self.options.timestep_s), 1)
        self._steps, self._zero = 0, np.inf
        self._applied = np.zeros(len(self.joint_names))
        self._control()
        self.step(round(_SETTLE_S / self.options.timestep_s))
        self._steps = 0

    @property
    def time(self) -> float:
        """Simulated time since the robot has settled [s]."""
        return self._steps * self.options.timestep_s

    @property
    def moving(self) -> bool:
        return self._zero <= self.time < self._zero + self.movement.duration

    def move(self) -> None:
        """Begin random movements now; each call draws new movements."""
        if np.isfinite(self._zero):
            self._draw_movement()
        self._zero = self.time

    def step(self, count: int = 1) -> None:
        """Advance physics and controller by ``count`` timesteps.

        Raises
        ------
        ModelError
            The robot has fallen.
        """
        for _ in range(count):
            if self._steps % self._every == 0:
                self._control()
            self._mujoco.mj_step(self.world.model, self._data)
            self._steps += 1
        if self._data.qpos[2] < self._start[2] - _FALLEN_M or not np.isfinite(self._data.qpos).all():
            raise ModelError(f"simulation: the robot fell after {self.time:.1f} s; make its movements smaller")

    def true_state(self) -> BodySample:
        self._mujoco.mj_forward(self.world.model, self._data)
        q, v, a = to_pinocchio(self.world, self._data)
        linear, angular, turn = a[:3] + np.cross(v[3:6], v[:3]), v[3:6], Rotation.from_quat(q[3:7]).inv()
        lever, axes = self._imu.translation, self._imu.rotation
        at_sensor = linear + np.cross(a[3:6], lever) + np.cross(angular, np.cross(angular, lever))
        return BodySample(
            self.time, q[7:], v[6:], self._applied.copy(), base_pose=q[:7], base_twist=v[:6], base_acceleration=a[:6],
            specific_force=axes.T @ (at_sensor - turn.apply(self.world.model.opt.gravity)), rate=axes.T @ angular,
            wrenches={plate.name: plate_wrench(self.world, self._data, plate) for plate in self.robot.plates})

    def coordinates(self) -> tuple[Array, Array, Array]:
        """True configuration, velocity and acceleration at the last :meth:`true_state`, in Pinocchio's convention."""
        return to_pinocchio(self.world, self._data)

    def state(self) -> BodySample:
        """State as the sensors measure it."""
        return self._sensors.measure(self.true_state())

    def _draw_movement(self) -> None:
        options = self.options.movement
        safe = np.minimum(options.com_m, [*(_MAX_COM_SHARE * self._support()), np.inf])
        options = attrs.evolve(options, com_m=tuple(float(limit) for limit in safe))
        self.movement = Movement(options, self._amplitudes, self._movement_rng)

    def _support(self) -> Array:
        """Half the extent ``(2,)`` of the soles on the ground [m]."""
        model, data = self.model, self.model.createData()
        pin.framesForwardKinematics(model, data, self._start)
        corners = [
            data.oMf[model.getFrameId(sole.frame)].act(corner) for sole in self.robot.soles for corner in sole.corners]
        return 0.5 * np.ptp(corners, axis=0)[:2]

    def _control(self) -> None:
        q, v, _ = to_pinocchio(self.world, self._data)
        self._applied = self._controller.torque(q, v, self.movement.at(self.time - self._zero))
        self._data.qfrc_applied[self.world.dof] = self._applied


def free_model(urdf: str) -> pin.Model:
    """Pinocchio model with a free root."""
    return pin.buildModelFromXML(parsing.read_description(urdf), pin.JointModelFreeFlyer())


def solve_stance(model: pin.Model, soles: Sequence[Sole], q: Array) -> Array:
    """Configuration with the soles flat on the ground and the centre of mass above them.

    Newton steps reduce the errors of the soles, the horizontal centre of mass and, with a low weight, the joints.

    Raises
    ------
    ModelError
        The steps find no such configuration.
    """
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    poses = [sole.pose(model, data) for sole in soles]
    middle = np.mean([pose.translation for pose in poses], axis=0)
    lift = pin.SE3(poses[0].rotation.T, -poses[0].rotation.T @ middle)
    q[:3] = (lift * pin.SE3(pin.Quaternion(q[3:7]).toRotationMatrix(), q[:3])).translation
    q[3:7] = pin.Quaternion(poses[0].rotation.T @ pin.Quaternion(q[3:7]).toRotationMatrix()).coeffs()
    targets = [pin.SE3(np.eye(3), np.append((lift * pose).translation[:2], 0.0)) for pose in poses]
    start = q.copy()
    for _ in range(200):
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        rows = [sole.jacobian(model, data) for sole in soles]
        errors = [
            pin.log6(sole.pose(model, data).actInv(target)).vector for sole, target in zip(soles, targets, strict=True)]
        rows.append(pin.jacobianCenterOfMass(model, data, q)[:2])
        errors.append(-data.com[0][:2])
        A = np.vstack([*rows, 1e-3 * np.eye(model.nv)])
        b = np.concatenate([*errors, 1e-3 * pin.difference(model, q, start)])
        step = np.linalg.solve(A.T @ A, A.T @ b)
        q = pin.integrate(model, q, step)
        if np.abs(np.concatenate(errors)).max() < 1e-6:
            return q
    raise ModelError("simulation: the robot cannot stand flat on its soles from its start pose; bend its knees")


def simulate_movements(
        robot: LeggedRobot, *, state_hz: float = 200.0, noise: bool = True, name: str = "simulated") -> Recording:
    """Run the robot's movements and record all its sensors at one rate.

    Parameters
    ----------
    noise : whether sensors are noisy; if not, the exact acceleration of the base is also recorded.

    Raises
    ------
    ModelError
        The robot fell.
    """
    per_state = max(round(1.0 / (state_hz * robot.options.timestep_s)), 1)
    measure = robot.state if noise else robot.true_state
    robot.move()
    begin, samples = robot.time, [measure()]
    while robot.moving or robot.time < begin + robot.movement.duration + _RECORDED_TAIL_S:
        robot.step(per_state)
        samples.append(measure())

    def table(key: str) -> np.ndarray:
        return np.array([getattr(sample, key) for sample in samples])

    return Recording(
        robot.joint_names, table("time") - samples[0].time, table("position"), table("effort"), table("velocity"),
        wrenches={
            plate.name: np.array([sample.wrenches[plate.name] for sample in samples]) for plate in robot.robot.plates},
        base_pose=table("base_pose"), base_twist=table("base_twist"),
        base_acceleration=None if noise else table("base_acceleration"),
        imu=np.hstack([table("specific_force"), table("rate")]), name=name)
