"""Calibrate a simulated arm without ROS: plan, move, identify, validate. Needs mujoco and example-robot-data.

    python examples/calibrate_offline.py --duration 20
"""

import argparse

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.identification.assessment.validation import Validation, validate
from inertid_ros.identification.identify import identify
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import example_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate


def calibrate(duration_s: float, iterations: int, seed: int = 0) -> Validation:
    """Calibrate a Panda whose URDF has errors by point masses, and return its held-out errors."""
    options = RobotOptions(locked_joints={"panda_finger_joint1": 0.0})
    truth = load_model(example_urdf(), options)
    given = load_model(write_urdf(truth, perturb(truth, np.random.default_rng(seed))), options)
    robot, limits = SimulatedRobot(truth), motion_limits(given)
    recordings = []
    for motion in (seed, seed + 1):  # the first for identification, the second for validation
        excitation = ExcitationOptions(duration_s=duration_s, seed=motion, iterations=iterations)
        plan = plan_excitation(given, limits, robot.desired()[0], excitation)
        recordings.append(prepare(simulate(robot, plan), given))
    return validate(identify(given, recordings[:1]), recordings[1:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=20.0, help="length of each motion [s]")
    parser.add_argument("--iterations", type=int, default=30, help="iterations of each optimization of the motion")
    arguments = parser.parse_args()
    print(calibrate(arguments.duration, arguments.iterations).message)
