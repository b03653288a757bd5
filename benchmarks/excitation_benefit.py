"""Benefit of an optimised motion for identification, compared with a random feasible motion.

Both motions have equal length, limits and start. One simulated arm executes both (MuJoCo, with friction, sensor noise
and a controller that uses the wrong URDF), and both are identified with equal options.
"""

import sys

import attrs
import numpy as np
from tables import machine, publish, table

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions, LimitOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import geodesic_distance
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.excitation.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.identification.solvers.coordinates import (
    TYPICAL_PRIOR_SPREAD,
    prior_coordinates,
    prior_covariance_root,
)
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

SEEDS, DURATION_S = range(10), 10.0
START = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
MODEL = RobotOptions(locked_joints={"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02})
ACCELERATION = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)  # rad/s^2, by the maker of the arm
CONDITION = ExcitationOptions(duration_s=DURATION_S, time_limit_s=600.0, workers=1, mounting="none")
MOTIONS = {
    "random": attrs.evolve(CONDITION, starts=1, improved=0),
    "condition number": CONDITION,
    "A, invariant": attrs.evolve(CONDITION, criterion="a", scaling="metric"),
}
ESTIMATORS = {"default": "consistent", "least squares": "wls"}
MEASURES = ("base parameters", "in prior deviations", "torque at random states", "geodesic distance")


def limits_of(model: RobotModel) -> MotionLimits:
    given = zip(model.joint_names, ACCELERATION, strict=True)
    return motion_limits(model, LimitOptions(acceleration=dict(given)))


def errors(estimate: Estimate, truth: Array) -> dict[str, float]:
    """Errors of base parameters in SI units [%] and in prior deviations, torque error [%], and mean geodesic distance
    of a link to its truth (infinite for inconsistent bodies)."""
    model = estimate.model
    projection = base_parameters_of_robot(model).projection
    error, states = projection @ (estimate.parameters - truth), sample_states(model)
    deviation = projection @ prior_covariance_root(prior_coordinates(model, estimate.information), TYPICAL_PRIOR_SPREAD)
    torque, wanted = (ForceEquations(model).predict(parameters, states) for parameters in (estimate.parameters, truth))
    scale = np.linalg.norm(wanted, axis=0)  # per joint, so that a wrist counts as much as a shoulder
    distance = float("inf")
    if estimate.consistent:
        distance = float(geodesic_distance(estimate.bodies, model.layout.bodies(truth)).mean())
    return dict(
        zip(
            MEASURES,
            (
                100 * float(np.linalg.norm(error) / np.linalg.norm(projection @ truth)),
                float(np.sqrt(np.mean((error / np.linalg.norm(deviation, axis=1)) ** 2))),
                100 * float(np.mean(np.linalg.norm(torque - wanted, axis=0) / scale)),
                distance,
            ),
            strict=True,
        )
    )


def experiment(true: RobotModel, seed: int) -> tuple[dict[str, float], dict[tuple[str, str], dict[str, float]]]:
    """Condition numbers by motion, and errors by motion and estimator, for one wrong URDF, arm and noise."""
    given = load_model(write_urdf(true, perturb(true, np.random.default_rng(seed))), MODEL)
    limits = limits_of(given)
    conditions, found = {}, {}
    collision = CollisionOptions(mesh_folders=(str(example_urdf().parents[3]),))
    for name, options in MOTIONS.items():
        plan = plan_excitation(given, limits, START, attrs.evolve(options, seed=seed, collision=collision))
        robot = SimulatedRobot(true, SimulationOptions(seed=seed), start=START)
        samples = prepare(simulate(robot, plan), given)
        truth = np.concatenate([robot.bodies.ravel(), *map(robot.drives.term, given.layout.drive_terms)])
        conditions[name] = plan.condition_number
        for title, estimator in ESTIMATORS.items():
            found[name, title] = errors(identify(given, [samples], IdentifyOptions(estimator=estimator)), truth)
    return conditions, found


def main() -> None:
    try:
        true = load_model(example_urdf(), MODEL)
    except ModelError as error:
        sys.exit(f"skipped: {error}")
    conditions, found = [], []
    for seed in SEEDS:
        condition, errors_ = experiment(true, seed)
        print(f"seed {seed}: {condition} {errors_}", flush=True)
        conditions.append(condition)
        found.append(errors_)
    rows = []
    for name in [name for name in MOTIONS if name != "random"]:
        before, after = ([entry[motion] for entry in conditions] for motion in ("random", name))
        rows.append([name, "condition number", "", *_compared(before, after)])
        for title in ESTIMATORS:
            for measure in MEASURES:
                pair = ([entry[motion, title][measure] for entry in found] for motion in ("random", name))
                rows.append([name, measure, title, *_compared(*pair)])
    header = [
        "planned for", "error", "estimator", "after random", "after planned", "ratio", "smallest ratio", "improved"]
    text = (
        f"## Benefit of an optimised motion\n\nA simulated Panda, {len(SEEDS)} seeds (wrong URDF, friction, noise,"
        f" motion), {DURATION_S:g} s of motion each, equal limits and start, without self-collision; medians over seeds"
        " of errors against the truth, and the smallest ratio over seeds."
        " *Base parameters*: norm of the error over the norm of the truth [%], SI units,"
        " bodies and drives."
        " *In prior deviations*: root mean square error of the base parameters in units of their prior standard"
        " deviations. *Torque at random states*: error of predicted torque over the whole range, mean over joints [%]."
        " *Geodesic distance*: mean over links.\n\n"
    )
    publish("excitation-benefit", text + table(header, rows) + f"\n\n{machine()}")


def _compared(random: list[float], optimised: list[float]) -> list[str]:
    """Medians, ratio per seed (median and smallest), and number of improved seeds."""
    if not np.isfinite([*random, *optimised]).all():
        return ["not physical", "not physical", "", "", ""]
    ratio = np.array(random) / np.array(optimised)
    medians = (f"{np.median(values):.3g}" for values in (random, optimised))
    return [*medians, f"{np.median(ratio):.2f}", f"{ratio.min():.2f}", f"{(ratio > 1).sum()} of {len(ratio)}"]


if __name__ == "__main__":
    main()
