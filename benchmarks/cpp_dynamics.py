"""The C++ dynamics of include/inertid_ros against the Python prediction: random states of 20 robots, time of a call.

    python benchmarks/cpp_dynamics.py [--robots ROBOTS] [--states STATES]
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from support.cpp import Case, compiled_dynamics, outcomes
from support.robots.drawn_robots import PUBLISHED
from support.robots.random_robots import random_states
from tables import machine, publish, table

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.simulation.example_robots import example_urdf

ACCURACY, STEP_US = 1e-12, 3.0  # of the largest torque; of one inverse dynamics with friction on seven joints


def drawn(urdf: str, count: int, seed: int) -> tuple[RobotModel, Array, Samples]:
    """A published robot with all drive terms drawn at random, smooth and exact directions, and states."""
    rng = np.random.default_rng(seed)
    model = load_model(example_urdf(urdf))
    speeds = np.where(rng.random(model.joints) < 0.5, rng.uniform(0.01, 0.1, model.joints), 0.0)
    model = model.with_layout(transition_speeds=tuple(speeds))
    layout = model.layout
    parameters = np.concatenate([perturb(model, rng).ravel(), rng.uniform(0, 1, layout.size - layout.body_size)])
    return replace(model, fitted_bodies=layout.bodies(parameters)), parameters, random_states(rng, model, count)


def main() -> None:
    """Publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--robots", type=int, default=20, help="published robots (default 20)")
    parser.add_argument("--states", type=int, default=10_000, help="random states of each (default 10000)")
    options = parser.parse_args()
    rows: list[list[object]] = []
    program = compiled_dynamics()
    for seed, urdf in enumerate(PUBLISHED[: options.robots]):
        model, parameters, states = drawn(urdf, options.states, seed)
        drives = {term: parameters[model.layout.drive(term)] for term in DRIVE_TERMS}
        message = known_parameters(model, model.layout.bodies(parameters), drives, Time())
        outcome = outcomes(program, [Case(model, message, (states.q, states.v, states.a))])[0]
        if outcome.torque is None:
            raise SystemExit(f"{urdf}: {outcome.refused}")
        expected = ForceEquations(model).predict(parameters, states)
        error = np.abs(outcome.torque - expected).max() / np.abs(expected).max()
        seconds = f"{1e6 * outcome.seconds:.2f}"
        rows.append([Path(urdf).stem, model.joints, f"{error:.1e}", seconds, outcome.allocations])
    header = ("robot", "joints", "largest error / largest torque", "inverse dynamics, median [µs]", "allocations")
    publish("cpp-dynamics", f"""## C++ dynamics against Python

`benchmarks/cpp_dynamics.py --robots {options.robots} --states {options.states}`, {machine()}. Torque of bodies, rotors,
friction (Stribeck and smooth direction included), stiffness and offset of `inertid_ros::Dynamics`, at random states,
against the Python prediction; g++ -O2. Target: {ACCURACY:g}, {STEP_US:g} µs on seven joints, no allocation.

{table(header, rows)}""")


if __name__ == "__main__":
    main()
