"""Two arms in MuJoCo with friction, noise and URDFs that are wrong, each with two recordings of different motions."""

from dataclasses import replace
from functools import cache

import numpy as np
from support.recordings.spoiling import Case
from support.robots.quick_plans import FINGERS, PANDA_START, quick_plan

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import PANDA, example_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

UR10 = "ur_description/urdf/ur10_robot.urdf"
_UR10_START = np.array([0.0, -1.5, 1.5, 0.0, 0.5, 0.0])
_ACCELERATION = 8.0  # rad/s^2


@cache
def simulated_case(name: str, seed: int = 0) -> Case:
    """``panda`` or ``ur10``; the seed chooses drives, errors of the URDF and motions."""
    urdf, start, locked = {"panda": (PANDA, PANDA_START, FINGERS), "ur10": (UR10, _UR10_START, {})}[name]
    truth = load_model(example_urdf(urdf), RobotOptions(locked_joints=locked))
    given = load_model(write_urdf(truth, perturb(truth, np.random.default_rng(seed))), truth.options)
    limits = motion_limits(truth, LimitOptions(acceleration=dict.fromkeys(truth.joint_names, _ACCELERATION)))
    robot = SimulatedRobot(truth, SimulationOptions(seed=seed), start=start)
    recordings = []
    for index in range(2):
        robot.reset(start)
        plan = quick_plan(limits, start, 2 * seed + index)
        recordings.append(replace(simulate(robot, plan, state_hz=250.0), name=f"{name} {index + 1}"))
    return Case(name, given, robot.bodies, (recordings[0],), (recordings[1],), truth.joint_names)
