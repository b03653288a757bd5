"""Tracking error of a simulated Panda under PD and PID torque control, with feed-forward torque from several models.

    PYTHONPATH=benchmarks:test python benchmarks/feed_forward.py [--seeds SEEDS]

The control law is taken from ros2_control's joint_trajectory_controller with the command interface effort: the efforts
of the trajectory, linear between its points, are added to a PID for the measured states.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from studies.simulated_panda import START, SimulatedPanda
from tables import machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.simulated_robot import SimulatedRobot

RATE_HZ, PAUSE_S, TARGETS, SPEED = 500.0, 0.3, 6, 0.5  # of the controller; at each target; share of the speed limits
P = np.array([600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0])
D = np.array([30.0, 30.0, 30.0, 30.0, 10.0, 10.0, 5.0])
INTEGRAL, CLAMP = 2.0 * P, 0.5  # clamp as a share of the effort limit
Feed = tuple[Array, Array] | None  # times (N,) and torque (N, n)
STEP_S, SPARSE_S = 0.02, 0.1  # distance of the points: as the node feed_forward adds them, and of usual plans


def motion(robot: RobotModel, seed: int) -> PiecewiseQuintic:
    """Quintic motions to random targets with a pause at each, from and back to START."""
    rng, limits = np.random.default_rng(seed), robot.limits
    middle, reach = 0.5 * (limits.lower + limits.upper), 0.35 * (limits.upper - limits.lower)
    targets = [START, *np.clip(START + rng.uniform(-1.0, 1.0, (TARGETS, 7)), middle - reach, middle + reach), START]
    times, poses = [0.0], [START]
    for target in targets:
        largest = float(np.max(np.abs(target - poses[-1]) * 1.875 / (SPEED * limits.velocity)))
        times += [times[-1] + max(largest, 0.5), times[-1] + max(largest, 0.5) + PAUSE_S]
        poses += [target, target]
    rest = np.zeros((len(poses), 7))
    return PiecewiseQuintic(np.array(times), np.array(poses), rest, rest)


def torque(model: RobotModel, parameters: Array, curve: PiecewiseQuintic, step_s: float) -> tuple[Array, Array]:
    """Times (N,) and torque (N, n) at points of a motion ``step_s`` apart, without the sensors' offsets."""
    parameters = np.array(parameters)
    parameters[model.layout.drive("offset")] = 0.0
    time = np.linspace(0.0, curve.duration, int(np.ceil(curve.duration / step_s)) + 1)
    every = np.ones((len(time), 7), dtype=bool)
    samples = Samples(time, *curve.sample(time), np.zeros(every.shape), every, every[:, 0])
    return time, ForceEquations(model).predict(parameters, samples)


def tracking(robot: SimulatedRobot, curve: PiecewiseQuintic, feed: Feed, integral: Array) -> Array:
    """Tracking error (N, n) of one motion [rad] with a feed-forward torque over time, or without."""
    robot.reset(START)
    steps = round(1.0 / (RATE_HZ * robot.options.timestep_s))
    sum_of_errors, errors, clamp = np.zeros(7), [], CLAMP * robot.effort_limit / np.maximum(integral, 1e-9)
    for cycle in range(int((curve.duration + PAUSE_S) * RATE_HZ)):
        q, v, _ = curve.at(cycle / RATE_HZ)
        state = robot.state()
        sum_of_errors = np.clip(sum_of_errors + (q - state.position) / RATE_HZ, -clamp, clamp)
        effort = P * (q - state.position) + D * (v - state.velocity) + integral * sum_of_errors
        if feed is not None:
            effort += [np.interp(cycle / RATE_HZ, feed[0], column) for column in feed[1].T]
        errors.append(q - robot.true_state().position)
        robot.command_effort(effort)
        robot.step(steps)
    return np.array(errors)


def errors_of(seed: int) -> dict[str, tuple[float, float, float]]:
    """RMS error under PD and PID, and largest error under PD [mrad], by what is fed forward."""
    panda = SimulatedPanda(seed, {})
    recordings = [panda.record(name, index) for index, name in enumerate(("train", "held out"))]
    with tempfile.TemporaryDirectory() as folder:
        outcome = calibrate(panda.given, recordings[:1], recordings[1:])
        result = Result.load(outcome.save(Path(folder) / "result"))
    robot = SimulatedRobot(panda.true, SimulationOptions(seed=seed), start=START)
    robot.become(drives=replace(robot.drives, offset=np.zeros(7)))  # recorded by the sensors, but no torque
    curve, layout = motion(panda.true, seed), result.model.layout
    given = np.concatenate([panda.given.consistent_body_prior.ravel(), np.zeros(layout.size - layout.body_size)])
    bodies = np.where(np.arange(layout.size) < layout.body_size, result.parameters, 0.0)
    feeds: Mapping[str, Feed] = {
        "none": None,
        "bodies of the URDF as given": torque(panda.given, given, curve, STEP_S),
        "calibrated bodies alone": torque(result.model, bodies, curve, STEP_S),
        "calibrated bodies, rotors and friction": torque(result.model, result.parameters, curve, STEP_S),
        f"calibrated, at points {SPARSE_S:g} s apart": torque(result.model, result.parameters, curve, SPARSE_S),
        "the true robot": torque(panda.true, robot.truth, curve, STEP_S)}
    rows = dict[str, tuple[float, float, float]]()
    for name, feed in feeds.items():
        pd, pid = (1e3 * tracking(robot, curve, feed, integral) for integral in (0.0 * P, INTEGRAL))
        rms = [float(np.sqrt(np.mean(error**2))) for error in (pd, pid)]
        rows[name] = (rms[0], rms[1], float(np.abs(pd).max()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="tracking error with feed-forward torque from several models")
    parser.add_argument("--seeds", type=int, default=5, help="robots, each with another wrong URDF and other drives")
    seeds = parser.parse_args().seeds
    runs = [errors_of(seed) for seed in range(seeds)]
    medians = {name: np.median([run[name] for run in runs], axis=0) for name in runs[0]}
    rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in medians.items()]
    header = ["feed-forward", "PD, RMS [mrad]", "PID, RMS [mrad]", "PD, largest [mrad]"]
    publish("feed-forward", f"""## Feed-forward into a trajectory controller

`benchmarks/feed_forward.py --seeds {seeds}`, {machine()}. Simulated Panda in MuJoCo with rotors, viscous and Coulomb
friction; each of the {seeds} robots has other drives and another URDF that is wrong by point masses, and is calibrated
by 20 s of motion. The controller computes the law of `joint_trajectory_controller` (command interface `effort`) at
500 Hz from noisy states; {TARGETS + 1} motions between random targets at {100 * SPEED:.0f} % of the speed limits.
Medians over the robots.

{table(header, rows)}
""")


if __name__ == "__main__":
    main()
