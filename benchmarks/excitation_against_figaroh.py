"""Optimal trajectories against FIGAROH 1.0.2: a UR10, the same limits, duration and sampling, judged alike.

FIGAROH runs in the environment that ``against_figaroh.py --install`` makes; without it nothing is compared.
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
from support import arm
from tables import machine, publish, table

from inertid_ros.excitation.constraints.collision.clearance import Clearance
from inertid_ros.excitation.constraints.collision.options import CollisionOptions
from inertid_ros.excitation.constraints.limits import MotionLimits
from inertid_ros.excitation.criteria.known import KnownInformation
from inertid_ros.excitation.options import ExcitationOptions
from inertid_ros.excitation.planning.optimize import plan_excitation
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.robot.capsules import shape_capsules
from inertid_ros.robot.collision_shapes import collision_shapes
from inertid_ros.robot.model import ModelOptions, RobotModel, load_model
from inertid_ros.robot.parameters import Array
from inertid_ros.simulation.example import example_urdf

RATE, PROBES = 100, 300
COMPARED = """\
A UR10, bodies only, 8 s at 100 Hz. FIGAROH's own classes set up its problem: a cubic spline through five waypoints, 24
variables, IPOPT with forward differences, limits of position, velocity and torque at samples, and **no** collision
pairs. Ours gets the limits that its spline object holds, as accelerations the largest that its motion has per joint,
and keeps all of them between samples too; self-collision by the URDF's meshes is on, and the motion starts and ends at
rest. Both are judged by one regressor, Pinocchio's, at the same instants: the condition number of its base columns in
SI units, which is what FIGAROH minimises and what ours is asked for here. Time is processor time on one thread, ours
of planning and all checks, FIGAROH's of its solver alone. Meshes are read beforehand."""


def theirs(folder: Path, seed: int) -> dict:
    command = [str(ENVIRONMENT / "bin" / "python"), str(HERE / "support" / "figaroh_motion.py"), str(folder), str(seed)]
    done = subprocess.run(command, env=_plain(1), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(model: RobotModel, found: dict, iterations: int, folder: str) -> tuple[Plan, float]:
    """A motion within the limits that theirs had, and the time that planning it takes [s]."""
    acceleration = np.abs(np.array(found["a"])).max(axis=0)
    bounds = (np.array(found[name]) for name in ("lower", "upper", "velocity"))
    limits = MotionLimits(model.joint_names, *bounds, acceleration, np.array(found["effort"]))
    duration = found["time"][-1]
    options = ExcitationOptions(
        duration_s=duration, base_frequency_hz=1 / duration, harmonics=5, criterion_samples=40, constraint_samples=80,
        scaling="none", starts=4, improved=1, iterations=iterations, limit_use=1.0, workers=1,
        collision=CollisionOptions(mesh_folders=(folder,)),
    )
    plain = KnownInformation(np.zeros((0, model.layout.size)), np.ones(model.joints))
    start = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
    begin = time.process_time()
    plan = plan_excitation(model, limits, start, options, known=plain)
    seconds = time.process_time() - begin
    Clearance(model, limits, options.collision).check(plan, limits)
    return plan, seconds


def base_columns(robot: pin.Model) -> list[int]:
    """Independent columns of Pinocchio's regressor, the first ones."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="of FIGAROH's random waypoints (default: 3)")
    parser.add_argument("--iterations", type=int, default=45, help="of our search (default: 45)")
    options, _ = parser.parse_known_args()
    if not (ENVIRONMENT / "bin" / "python").exists():
        sys.exit("skipped: FIGAROH is not installed; against_figaroh.py --install makes an environment for it")
    file = example_urdf(arm.URDF)
    folder = str(file.parents[3])
    model = load_model(file, ModelOptions(drive_terms=()))
    for shape in collision_shapes(model, (folder,))[0]:
        shape_capsules(shape)
    columns = base_columns(model.pinocchio)

    def judged(q: Array, v: Array, a: Array) -> float:
        return float(np.linalg.cond(regressor(model.pinocchio, q, v, a)[:, columns]))

    runs = []
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "robot.urdf").write_text(arm.urdf())
        for seed in range(options.seeds):
            found = theirs(Path(name), seed)
            if not found["found"]:
                print(f"FIGAROH found no feasible motion with seed {seed}, after {found['cpu']:.0f} s", flush=True)
                continue
            plan, seconds = ours(model, found, options.iterations, folder)
            instants = np.array(found["time"])
            own, other = judged(*plan.sample(instants)), judged(*(np.array(found[key]) for key in "qva"))
            runs.append((own, other, seconds, found["solver"], found["cpu"]))
            print(f"seed {seed}: {own:.1f} in {seconds:.2f} s, FIGAROH {other:.1f} in {found['cpu']:.1f} s", flush=True)
    if not runs:
        sys.exit("nothing to compare: FIGAROH found no feasible motion")
    middle = [statistics.median(column) for column in zip(*runs, strict=True)]
    rows = [
        ["condition number", f"**{middle[0]:.1f}**", f"{middle[1]:.1f}", f"{middle[1] / middle[0]:.2f}x", "above 1x"],
        ["processor time [s]", f"**{middle[2]:.2f}**", f"{middle[4]:.1f}", f"{middle[4] / middle[2]:.1f}x", "10x"],
        ["of FIGAROH's solver alone, by the clock [s]", "", f"{middle[3]:.1f}", f"{middle[3] / middle[2]:.1f}x", ""],
        ["self-collision", "kept, proven", "not looked at", "", ""],
    ]
    text = table(("UR10, 8 s", "ours", "FIGAROH 1.0.2", "ratio", "wanted"), rows)
    title = "## Optimal trajectory of a UR10, against FIGAROH"
    note = f"{machine()}; medians over {len(runs)} of {options.seeds} seeds in which FIGAROH found a motion"
    publish("figaroh-trajectory", "\n\n".join([title, COMPARED, text, note]))


if __name__ == "__main__":
    main()
