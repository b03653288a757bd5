"""Adapt an arm's controller to an unknown load in the hand. Needs example-robot-data.

    python examples/adaptive_tracking.py --load 2
"""

import argparse

import numpy as np
import pinocchio

from inertid_ros.adaptive_control.controller import AdaptationOptions, AdaptiveController, Reference
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, is_consistent
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import example_urdf

DT, PERIOD_S = 1e-3, 2.0
READY = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])


def reference(time: float) -> Reference:
    """Return a swing of all joints about the ready pose, with zero velocity at this pose."""
    omega = 2 * np.pi / PERIOD_S
    swing = np.full(len(READY), 0.2)
    return Reference(
        READY + swing * (np.cos(omega * time) - 1),
        -swing * omega * np.sin(omega * time),
        -swing * omega**2 * np.cos(omega * time),
    )


def largest_errors(load_kg: float, rounds: int = 4) -> list[float]:
    """Return the largest joint error in each round [rad]; the load is in the hand after the first round."""
    model = load_model(example_urdf(), RobotOptions(locked_joints={"panda_finger_joint1": 0.0}))
    bodies = model.consistent_body_prior
    loaded = bodies.copy()
    loaded[-1] += from_mass_com_inertia(load_kg, np.array([0.0, 0.0, 0.15]), 0.002 * load_kg * np.eye(3))
    controller = AdaptiveController(model, bodies, AdaptationOptions(speed=10.0))  # like the node
    q, v, errors = READY.copy(), np.zeros(len(READY)), []
    for number in range(rounds):
        arm = model.with_bodies(loaded if number else bodies)
        data, largest = arm.createData(), 0.0
        for step in range(int(PERIOD_S / DT)):
            wanted = reference(step * DT)
            largest = max(largest, float(np.abs(q - wanted.position).max()))
            torque = controller.step(q, v, wanted, DT)
            v = v + DT * pinocchio.aba(arm, data, q, v, torque)
            q = q + DT * v
        errors.append(largest)
    assert is_consistent(controller.bodies).all()
    return errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", type=float, default=2.0, help="mass in the hand [kg]")
    for number, error in enumerate(largest_errors(parser.parse_args().load)):
        print(f"round {number + 1}{', load in the hand' * bool(number)}: {1e3 * error:.1f} mrad at most")
