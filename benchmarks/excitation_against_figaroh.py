"""Comparison of optimal trajectories with FIGAROH 1.0.2: a UR10, equal limits, duration, sampling and evaluation.

FIGAROH runs in the environment that ``against_figaroh.py --install`` makes; without it the benchmark is skipped.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
from against_figaroh import ENVIRONMENT, HERE, _plain
from studies import arm
from tables import machine, publish, table

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.clearance import ClearanceConstraint
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.criterion import EarlierInformation
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.shapes import shape_capsules
from inertid_ros.simulation.example_robots import example_urdf

PROBES = 300
# FIGAROH has no limit of acceleration: ours runs with a limit above all accelerations, and with its default.
FREE, DEFAULT = 50.0, 5.0  # rad/s^2
PLANNED = (("none", FREE), ("columns", FREE), ("none", DEFAULT))
INTERVALS = 12  # our quintic B-spline
COMPARED = """\
A UR10, bodies only, 8 s at 10 Hz (at 100 Hz FIGAROH takes minutes). FIGAROH's own classes set up its problem: a cubic
spline through five waypoints, 24 variables, IPOPT with forward differences, limits of position, velocity and torque at
samples, and **no** collision pairs. Ours gets the limits of FIGAROH's spline object and also keeps them between
samples. Ours avoids self-collision of the URDF's meshes; its motion, a quintic B-spline, returns to its start.
FIGAROH has no limit of acceleration, and in our first two rows this limit is never active. Our third row keeps our
default of {default:g} rad/s^2 and is not directly comparable. The regressor of Pinocchio evaluates all motions at equal
instants: condition number of its base columns in SI units, which FIGAROH minimises, and with columns of unit norm,
which does not depend on units. Ours is planned once for each. Time is processor time on one thread for planning and all
checks. Meshes are read beforehand."""


def theirs(folder: Path, seed: int) -> dict:
    command = [str(ENVIRONMENT / "bin" / "python"), str(HERE / "studies" / "figaroh_motion.py"), str(folder), str(seed)]
    done = subprocess.run(command, env=_plain(1), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(
    model: RobotModel, found: dict, wanted: tuple[str, float], iterations: int, folder: str
) -> tuple[Plan, float]:
    """Motion within the limits of FIGAROH's motion, and its planning time [s]."""
    lower, upper, velocity, effort = (np.array(found[name]) for name in ("lower", "upper", "velocity", "effort"))
    scaling, acceleration = wanted
    limits = MotionLimits(model.joint_names, lower, upper, velocity, np.full(model.joints, acceleration), effort)
    duration = found["time"][-1]
    options = ExcitationOptions(
        kind="bspline", duration_s=duration, intervals=INTERVALS, criterion_samples=40, constraint_samples=80,
        scaling=scaling, starts=4, improved=1, iterations=iterations, limit_use=1.0, workers=1,
        mounting="none",  # as in FIGAROH
        collision=CollisionOptions(mesh_folders=(folder,)),
    )
    plain = EarlierInformation(np.zeros((0, model.layout.size)), np.ones(model.joints))
    start = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
    begin = time.process_time()
    plan = plan_excitation(model, limits, start, options, earlier=plain)
    seconds = time.process_time() - begin
    ClearanceConstraint(model, limits, options.collision).check(plan)
    return plan, seconds


def base_columns(robot: pin.Model) -> list[int]:
    """First independent columns of Pinocchio's regressor."""
    rng = np.random.default_rng(0)
    rows = regressor(robot, *rng.uniform(-2, 2, (3, PROBES, robot.nv)))
    chosen: list[int] = []
    for column in range(rows.shape[1]):
        trial = rows[:, [*chosen, column]]
        norms = np.linalg.norm(trial, axis=0)
        if norms[-1] > 1e-9 and np.linalg.svd(trial / norms, compute_uv=False)[-1] > 1e-7:
            chosen.append(column)
    return chosen


def regressor(robot: pin.Model, q: Array, v: Array, a: Array) -> Array:
    data = robot.createData()
    return np.vstack([pin.computeJointTorqueRegressor(robot, data, *row).copy() for row in zip(q, v, a, strict=True)])


def lower(runs: list[list[float]], column: int) -> str:
    """Number of runs in which our measure is below FIGAROH's measure, or an empty cell."""
    return "" if column < 3 else f"{sum(run[column] < run[column % 3] for run in runs)} of {len(runs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=9, help="number of seeds of FIGAROH's waypoints (default: 9)")
    parser.add_argument("--iterations", type=int, default=90, help="iterations of our search (default: 90)")
    options, _ = parser.parse_known_args()
    if not (ENVIRONMENT / "bin" / "python").exists():
        sys.exit("skipped: FIGAROH is not installed; against_figaroh.py --install makes an environment for it")
    file = example_urdf(arm.URDF)
    folder = str(file.parents[3])
    model = load_model(file, RobotOptions(drive_terms=()))
    for shape in collision_shapes(model, (folder,))[0]:
        shape_capsules(shape)
    columns = base_columns(model.pinocchio)

    def evaluated(q: Array, v: Array, a: Array) -> list[float]:
        rows = regressor(model.pinocchio, q, v, a)[:, columns]
        return [float(np.linalg.cond(matrix)) for matrix in (rows, rows / np.linalg.norm(rows, axis=0))]

    runs = []
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "robot.urdf").write_text(arm.urdf())
        for seed in range(options.seeds):
            found = theirs(Path(name), seed)
            if not found["found"]:
                print(f"FIGAROH found no feasible motion with seed {seed}, after {found['cpu']:.0f} s", flush=True)
                continue
            run = [*evaluated(*(np.array(found[key]) for key in "qva")), found["cpu"]]
            for wanted in PLANNED:
                plan, seconds = ours(model, found, wanted, options.iterations, folder)
                run += [*evaluated(*plan.sample(np.array(found["time"]))), seconds]
            runs.append(run)
            print(f"seed {seed}: {', '.join(f'{value:.2f}' for value in run)}", flush=True)
    if not runs:
        sys.exit("skipped: FIGAROH found no feasible motion")
    middle = [statistics.median(column) for column in zip(*runs, strict=True)]
    names = (
        "FIGAROH 1.0.2", "**ours, planned in SI units**", "**ours, planned with unit columns**",
        f"ours, planned in SI units, at most {DEFAULT:g} rad/s^2",
    )
    sides = [middle[index : index + 3] for index in range(0, len(middle), 3)]
    rows = [
        [name, f"{si:.1f}", lower(runs, 3 * side), f"{unit:.2f}", lower(runs, 3 * side + 1), f"{seconds:.1f}",
         f"{middle[2] / seconds:.1f}x"]
        for side, (name, (si, unit, seconds)) in enumerate(zip(names, sides, strict=True))
    ]  # fmt: skip
    header = ("UR10, 8 s", "condition number, SI units", "lower in", "unit columns", "lower in", "processor time [s]",
              "faster by")  # fmt: skip
    text = table(header, rows)
    title = "## Optimal trajectory of a UR10, against FIGAROH"
    note = f"{machine()}; medians over {len(runs)} of {options.seeds} seeds in which FIGAROH found a motion"
    better = middle[3] < middle[0] and middle[4] < middle[1]  # one motion, by either measure
    verdict = (
        "Target: a lower condition number in a tenth of the time, for our first motion by both measures."
        f" Condition number: {'reached' if better else 'missed'};"
        f" time: {'reached' if 10 * middle[5] <= middle[2] else 'missed'}."
    )
    setting = COMPARED.format(default=DEFAULT)
    publish("figaroh-trajectory", "\n\n".join([title, setting, text, verdict, note]))


if __name__ == "__main__":
    main()
