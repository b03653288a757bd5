"""Execute a plan on the simulated robot and record it, without ROS and as fast as the machine can."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from inertid_ros.config.excitation import ExecutionOptions
from inertid_ros.core.inertial_parameters import MassComInertia
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable, MotionExecution
from inertid_ros.excitation.execution.plan_check import with_approach
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import PiecewiseQuintic

from .sensors import FloatingSample
from .simulated_robot import SimulatedRobot

_TAIL_S = 0.5  # recorded after the end of the plan
_MAX_OFFSET_M = 0.05  # offset of a box from the axis z


def simulate(
    robot: SimulatedRobot, plan: Plan, *, state_hz: float = 500.0, name: str = "simulated",
    each_step: Callable[[SimulatedRobot], None] = lambda robot: None,
) -> Recording:
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
    states, channels = [state for state in states if state.time >= zero - 1e-9], ("position", "velocity", "effort")
    position, velocity, effort = (np.array([getattr(state, key) for state in states]) for key in channels)
    time = np.array([state.time for state in states])
    recording = Recording(robot.joint_names, time - zero, position, effort, velocity, name=name)
    floating = [state for state in states if isinstance(state, FloatingSample)]
    if not floating:
        return recording
    pose, twist = (np.array([getattr(state, key) for state in floating]) for key in ("base_pose", "base_twist"))
    return replace(recording, base_pose=pose, base_twist=twist)


def follow(robot: SimulatedRobot, horizon: Horizon) -> None:
    """Send a horizon to the simulated robot; an empty horizon has no effect."""
    if len(horizon):
        knots = (horizon.position, horizon.velocity, horizon.acceleration)
        start = None if np.isnan(horizon.stamp) else horizon.stamp
        robot.follow(PiecewiseQuintic(horizon.time_from_start, *knots), start)


def homogeneous_box(
    rng: np.random.Generator, mass: float, sides: tuple[float, float] = (0.05, 0.2),
    ahead: tuple[float, float] = (0.05, 0.15),
) -> MassComInertia:
    """Return a box with random orientation in the frame of a link, with its centre up to 5 cm off in x and y.

    ``sides`` is the range of the side lengths, ``ahead`` the range of the centre along z [m].
    """
    squares = rng.uniform(*sides, 3) ** 2
    turn = Rotation.random(random_state=rng).as_matrix()
    com = np.array([*rng.uniform(-_MAX_OFFSET_M, _MAX_OFFSET_M, 2), rng.uniform(*ahead)])
    return MassComInertia(np.asarray(mass), com, turn @ np.diag(mass / 12 * (squares.sum() - squares)) @ turn.T)
