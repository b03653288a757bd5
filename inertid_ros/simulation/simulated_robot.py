"""SimulatedRobot: an arm in MuJoCo instead of hardware, with drives that a URDF does not describe.

Without ROS it executes a plan and records it as fast as the machine can.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from inertid_ros.config.excitation import ExecutionOptions
from inertid_ros.config.simulation import DriveOptions, SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.core.inertial_parameters import MassComInertia
from inertid_ros.core.samples import StateSample
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable, MotionExecution
from inertid_ros.excitation.execution.plan_check import with_approach
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.regressors.drives import dry_friction
from inertid_ros.robot.layout import STRIBECK_SPEED
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.controller import Cascade, Follower
from inertid_ros.simulation.mujoco_model import build_mujoco, import_mujoco, set_bodies, to_pinocchio
from inertid_ros.simulation.sensors import FloatingSample, Sensors

_DRIVE_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stribeck")
_FRICTION_IMPEDANCE = 0.99
_TAIL_S = 0.5  # recorded after the end of the plan
_MAX_OFFSET_M = 0.05  # offset of a box from the axis z


@dataclass(frozen=True)
class Drives:
    """``tau = rotor_inertia a + viscous v + (coulomb + stribeck exp(-|v| / stribeck_speed)) sign(v) + offset`` per
    joint, ``(n,)`` each, SI."""

    rotor_inertia: Array
    viscous: Array
    coulomb: Array
    offset: Array
    stribeck: Array | float = 0.0
    stribeck_speed: Array | float = STRIBECK_SPEED

    def __post_init__(self) -> None:
        for name in (*_DRIVE_TERMS, "stribeck_speed"):
            value = np.broadcast_to(np.array(getattr(self, name), dtype=float), np.shape(self.viscous))
            if not np.isfinite(value).all() or (name != "offset" and (value < 0).any()):
                raise ModelError(f"simulation: {name} is {value}; give a finite value of at least zero")
            object.__setattr__(self, name, value)

    def dry_friction(self, velocity: Array) -> Array:
        """Magnitude ``(n,)`` of the dry friction of the joints at a velocity ``(n,)`` [N m or N]."""
        return dry_friction(velocity, self.coulomb, np.asarray(self.stribeck), np.asarray(self.stribeck_speed))

    def term(self, name: str) -> Array:
        """True value ``(n,)`` of a drive term of the parameter layout; zero if the term is not simulated."""
        return getattr(self, name) if name in _DRIVE_TERMS else np.zeros_like(self.viscous)


def effort_scale(robot: RobotModel) -> Array:
    """Effort limits ``(n,)``; if the URDF has none, 1.5 times the largest gravity torque, at least 1 N m."""
    limits = robot.limits.effort
    if np.isfinite(limits).all():
        return limits
    rng, model = np.random.default_rng(0), robot.pinocchio
    data = model.createData()
    torques = [pin.computeGeneralizedGravity(model, data, q) for q in rng.uniform(-np.pi, np.pi, (100, robot.joints))]
    return np.where(np.isfinite(limits), limits, np.maximum(1.5 * np.abs(torques).max(axis=0), 1.0))


def typical_drives(robot: RobotModel, options: DriveOptions, rng: np.random.Generator) -> Drives:
    """Draw drives for a robot, different for every joint, with offsets of random sign."""
    effort, n = effort_scale(robot), robot.joints
    velocity = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, 2.0)
    factor = 1 + options.variation * rng.uniform(-1, 1, (4, n))
    return Drives(
        rotor_inertia=options.rotor_inertia * effort * factor[0],
        viscous=options.viscous * effort / velocity * factor[1], coulomb=options.coulomb * effort * factor[2],
        offset=options.offset * effort * factor[3] * rng.choice([-1.0, 1.0], n))


class SimulatedRobot:
    """MuJoCo physics, drives, controller and sensors of one arm. Joints are in the order of ``robot``.

    Parameters
    ----------
    robot : the true robot; MuJoCo's own reader loads its URDF.
    drives : true drives; default :func:`typical_drives`.
    start : (n,), pose at time zero; by default the middle of the position limits.
    floating : whether the root link moves freely; it begins at rest in the world's origin.

    Attributes
    ----------
    passes_efforts : whether the robot applies commanded efforts; if not, it follows positions or holds its pose.
    """

    def __init__(
            self, robot: RobotModel, options: SimulationOptions | None = None, *, drives: Drives | None = None,
            start: Array | None = None, floating: bool = False) -> None:
        self.robot, self.options, self._floating = robot, options or SimulationOptions(), floating
        drive_rng, sensor_rng = np.random.default_rng(self.options.seed).spawn(2)
        self.effort_limit = effort_scale(robot)
        self.drives = drives or typical_drives(robot, self.options.drives, drive_rng)
        self.bodies = np.array(robot.consistent_body_prior)
        self._mujoco = import_mujoco()
        self._compiled = build_mujoco(robot, self.options.timestep_s, floating)
        self._set_drives()
        self._data = self._mujoco.MjData(self._compiled.model)
        self._sensors = Sensors(self.options.sensors, self.effort_limit, sensor_rng)
        controller = self.options.controller
        self._pid = controller.kind == "pid"
        feed_forward = 1.0 if self._pid else controller.feed_forward
        self._cascade = Cascade(self._mean_inertia(), controller.bandwidth_rad_s, feed_forward, self.effort_limit)
        self._steps_per_cycle = max(round(1.0 / (controller.rate_hz * self.options.timestep_s)), 1)
        self.reset(start)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @property
    def truth(self) -> Array:
        """Parameter vector ``(p,)`` in the layout of ``robot``."""
        terms = [self.drives.term(term) for term in self.robot.layout.drive_terms]
        return np.concatenate([self.bodies.ravel(), *terms])

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._steps * self.options.timestep_s

    def reset(self, position: Array | None = None) -> None:
        """Set the time to zero, and hold a pose at rest.

        Raises
        ------
        ModelError
            The pose has the wrong length or is not finite.
        """
        if position is None:
            with np.errstate(invalid="ignore"):  # a joint without limits
                middle = 0.5 * (self.robot.limits.lower + self.robot.limits.upper)
            position = np.where(np.isfinite(middle), middle, 0.0)
        position = np.array(position, dtype=float)
        if position.shape != (self.robot.joints,) or not np.isfinite(position).all():
            raise ModelError(f"simulation: start {position} is not {self.robot.joints} finite numbers; correct it")
        self._steps = 0
        self._mujoco.mj_resetData(self._compiled.model, self._data)
        self._data.qpos[self._compiled.position] = position
        self._mujoco.mj_forward(self._compiled.model, self._data)
        self._follower = Follower(position)
        self._commanded_effort, self._effort_time = np.zeros(self.robot.joints), -np.inf
        self._applied = self._data.qfrc_bias[self._compiled.dof] + self.drives.offset
        self._measured_effort = self._applied
        self._take_position_control()
        self._applied = self._control()

    def become(self, robot: RobotModel | None = None, drives: Drives | None = None) -> None:
        """Change bodies or drives from now on, possibly in motion, for example when the robot grips a payload.

        The controller, its gains and the sensors stay the same.

        Raises
        ------
        ModelError
            The robot has other joints.
        """
        self.drives = drives or self.drives
        if robot is not None:
            if robot.hash != self.robot.hash:
                raise ModelError("simulation: the new robot has other joints; change only its bodies")
            self.robot, self.bodies = robot, np.array(robot.consistent_body_prior)
            set_bodies(self._compiled, self.bodies)
        self._set_drives()
        self._set_gains()

    def _set_drives(self) -> None:
        model, dof = self._compiled.model, self._compiled.dof
        model.dof_armature[dof] = self.drives.rotor_inertia
        model.dof_frictionloss[dof] = self.drives.dry_friction(np.zeros(len(dof)))
        # With MuJoCo's soft default friction, a joint creeps at rad/s below its breakaway torque. The time constant
        # below limits the creep to a few mrad/s: it is the stiffest value that is stable at the timestep.
        model.dof_solref[dof] = (2 * self.options.timestep_s, 1.0)
        model.dof_solimp[dof, :2] = _FRICTION_IMPEDANCE
        self._varying_friction = bool(np.any(self.drives.stribeck))

    def follow(self, points: PiecewiseQuintic, start: float | None = None) -> None:
        """Follow a trajectory from now on; its time zero is ``start`` [s, simulated], by default now.

        Raises
        ------
        ExcitationError
            The trajectory is refused, as by a JointTrajectoryController.
        """
        self._leave_effort_control()
        self._follower.follow(points, self.time, self.time if start is None else start)

    def stream(self, position: Array) -> None:
        """Move to a position ``(n,)`` in a straight line, within the time since the last streamed position."""
        self._leave_effort_control()
        self._follower.stream(position, self.time)

    def scale(self, factor: float) -> None:
        """From now on, follow trajectories at ``factor`` times their pace."""
        self._follower.scale(factor, self.time)

    def command_effort(self, effort: Array) -> None:
        """Apply efforts ``(n,)``, within the effort limits, until the next command or the timeout.

        Raises
        ------
        ExcitationError
            Wrong length or not finite.
        """
        effort = np.array(effort, dtype=float)
        if effort.shape != (self.robot.joints,) or not np.isfinite(effort).all():
            raise ExcitationError(f"command: efforts {effort} are not {self.robot.joints} finite numbers")
        self.passes_efforts = True
        self._set_gains()
        self._commanded_effort = np.clip(effort, -self.effort_limit, self.effort_limit)
        self._effort_time = self.time

    def step(self, count: int = 1) -> None:
        """Advance physics and controller by ``count`` timesteps."""
        model, data, dof = self._compiled.model, self._data, self._compiled.dof
        for _ in range(count):
            velocity = data.qvel[dof]
            # MuJoCo applies the velocity gain as implicit joint damping, which is stable for every inertia.
            data.qfrc_applied[dof] = self._applied + self._gain * velocity - self.drives.offset
            if self._varying_friction:
                model.dof_frictionloss[dof] = self.drives.dry_friction(velocity)
            self._mujoco.mj_step(model, data)
            self._steps += 1
            damped = self._gain * (data.qvel[dof] - velocity)
            # The sensor averages over the steps before and after the sample.
            before, self._applied = self._applied, self._control()
            self._measured_effort = 0.5 * (before + self._applied) - damped

    def state(self) -> StateSample:
        """Return the reported joint state. Effort is the drive's output at the joint side."""
        return self._sensors.measure(self.true_state())

    def true_state(self) -> StateSample:
        position, velocity = self._data.qpos[self._compiled.position], self._data.qvel[self._compiled.dof]
        joints = self.time, position.copy(), velocity.copy(), self._measured_effort.copy()
        if not self._floating:
            return StateSample(*joints)
        q, v, _ = to_pinocchio(self._compiled, self._data)
        return FloatingSample(*joints, q[:7], v[:6])

    def desired(self) -> tuple[Array, Array, Array]:
        """Return the position, velocity and acceleration that the controller follows now."""
        return self._follower.desired(self.time)

    def _set_gains(self) -> None:
        no_drive_loop = self.passes_efforts or self._pid
        self._gain = np.zeros(self.robot.joints) if no_drive_loop else self._cascade.gain
        self._compiled.model.dof_damping[self._compiled.dof] = self.drives.viscous + self._gain

    def _leave_effort_control(self) -> None:
        if self.passes_efforts:
            self._take_position_control()

    def _take_position_control(self) -> None:
        """Hold the robot at its present position, starting from its present effort."""
        self.passes_efforts = False
        self._set_gains()
        position = self._data.qpos[self._compiled.position]
        self._follower.hold(position)
        self._cascade.hold(position, self._applied)

    def _control(self) -> Array:
        """Return the efforts to apply until the next step."""
        if self.passes_efforts:
            if self.time - self._effort_time <= self.options.controller.effort_timeout_s:
                return self._commanded_effort
            self._take_position_control()
        timestep, step = self.options.timestep_s, self._steps % self._steps_per_cycle
        cycle = self._steps_per_cycle * timestep
        if step == 0:
            self._cascade.go_to(self._follower.desired(self.time, cycle)[0], cycle)
            if self._pid:
                state = self.state()
                return self._cascade.effort(0.0, state.position, state.velocity, cycle)
        elif self._pid:
            return self._applied
        position, velocity = self._data.qpos[self._compiled.position], self._data.qvel[self._compiled.dof]
        return self._cascade.effort(step * timestep, position, velocity, timestep)

    def _mean_inertia(self) -> Array:
        """Mean diagonal ``(n,)`` of the mass matrix, including rotors, which tunes the position drives."""
        model, (lower, upper, _) = self.robot.pinocchio, self.robot.limits.range_to_sample
        data, poses = model.createData(), np.random.default_rng(0).uniform(lower, upper, (50, self.robot.joints))
        return np.mean([np.diag(pin.crba(model, data, q)) for q in poses], axis=0) + self.drives.rotor_inertia


def simulate(
        robot: SimulatedRobot, plan: Plan, *, state_hz: float = 500.0, name: str = "simulated",
        each_step: Callable[[SimulatedRobot], None] = lambda robot: None) -> Recording:
    """Approach the start of a plan, execute the plan, and record joint states until half a second after its end.

    Commands are the same as for a real robot: short horizons that each end at rest. The recording begins at time zero
    with the plan, without the approach.

    Parameters
    ----------
    each_step : called before every timestep, for example to change the payload (:meth:`.SimulatedRobot.become`).

    Raises
    ------
    ExcitationError
        The plan may not be executed from the pose of the robot.
    """
    options, first = ExecutionOptions(), robot.state()
    # The measured pose is noisy; the first horizon continues from the commanded pose.
    whole, approach_time = with_approach(plan, robot.robot, robot.desired()[0], options)
    run = MotionExecution(HorizonTable(whole, whole.limits, options))
    run.clock_offset = 0.0
    timestep = robot.options.timestep_s
    per_command = max(int(round(options.period_s / timestep)), 1)
    per_state = max(int(round(1.0 / (state_hz * timestep))), 1)
    begin, steps = robot.time, int(np.ceil((whole.duration + _TAIL_S) / timestep))
    follow(robot, run.start(begin))
    states = [first]
    for step in range(1, steps + 1):
        each_step(robot)
        robot.step()
        if step % per_command == 0:
            follow(robot, run.step(robot.time))
        if step % per_state == 0:
            states.append(robot.state())
    zero = begin + approach_time
    states = [state for state in states if state.time >= zero - 1e-9]
    keys = ["time", "position", "velocity", "effort"]
    keys += ["base_pose", "base_twist"] * isinstance(first, FloatingSample)
    channels: dict[str, Any] = {key: np.array([getattr(state, key) for state in states]) for key in keys}
    channels["time"] -= zero
    return Recording(robot.joint_names, name=name, **channels)


def follow(robot: SimulatedRobot, horizon: Horizon) -> None:
    """Send a horizon to the simulated robot; an empty horizon has no effect."""
    if len(horizon):
        knots = (horizon.position, horizon.velocity, horizon.acceleration)
        start = None if np.isnan(horizon.stamp) else horizon.stamp
        robot.follow(PiecewiseQuintic(horizon.time_from_start, *knots), start)


def homogeneous_box(
        rng: np.random.Generator, mass: float, sides: tuple[float, float] = (0.05, 0.2),
        ahead: tuple[float, float] = (0.05, 0.15)) -> MassComInertia:
    """Return a box with random orientation in the frame of a link, with its centre up to 5 cm off in x and y.

    ``sides`` is the range of the side lengths, ``ahead`` the range of the centre along z [m].
    """
    squares = rng.uniform(*sides, 3) ** 2
    turn = Rotation.random(random_state=rng).as_matrix()
    com = np.array([*rng.uniform(-_MAX_OFFSET_M, _MAX_OFFSET_M, 2), rng.uniform(*ahead)])
    return MassComInertia(np.asarray(mass), com, turn @ np.diag(mass / 12 * (squares.sum() - squares)) @ turn.T)
