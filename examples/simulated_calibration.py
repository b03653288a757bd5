"""Calibrate a simulated Panda without ROS: wrong URDF, exciting motion, identification, judgement on another motion."""

import numpy as np

from inertid_ros.data.prepare import prepare
from inertid_ros.excitation.limits import motion_limits
from inertid_ros.excitation.optimize import plan_excitation
from inertid_ros.excitation.options import ExcitationOptions
from inertid_ros.identification.identify import identify
from inertid_ros.identification.validation import validate
from inertid_ros.robot.model import ModelOptions, load_model
from inertid_ros.robot.perturbation import perturb
from inertid_ros.robot.urdf import write_urdf
from inertid_ros.simulation.example import example_urdf
from inertid_ros.simulation.offline import simulate
from inertid_ros.simulation.robot import SimulatedRobot


def main() -> None:
    options = ModelOptions(locked_joints={"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02})
    truth = load_model(example_urdf(), options)
    given = load_model(write_urdf(truth, perturb(truth, np.random.default_rng(0))), options)

    start, limits = np.array([0, -0.785, 0, -2.356, 0, 1.571, 0.785]), motion_limits(given)
    plans = [plan_excitation(given, limits, start, ExcitationOptions(seed=seed, floor_m=0.1)) for seed in (0, 1)]
    print("condition numbers", [round(plan.condition_number, 1) for plan in plans])

    robot = SimulatedRobot(truth, controller_model=given, start=start)
    train, held_out = (prepare(simulate(robot, plan), given) for plan in plans)
    print(validate(identify(given, [train]), [held_out]).message)


if __name__ == "__main__":
    main()
