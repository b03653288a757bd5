"""Simulate a small robot with a wrong URDF, and write the URDF and the recordings for the guides.

    python -m inertid_ros.simulation.examples arm        robot.urdf, run1_bag, run2_bag, box_bag
    python -m inertid_ros.simulation.examples floating   satellite.urdf, flight1.npz, flight2.npz
    python -m inertid_ros.simulation.examples legged     robot.urdf, stand1_bag, stand2_bag; needs mujoco

The arm is simulated by inverse dynamics with friction and sensor noise, the satellite by conservation of momentum. The
legged robot balances on two force plates in MuJoCo. ``truth.urdf`` is the true robot, for comparison.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.config.simulation import LeggedRobotOptions, MovementOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.interval_motion import IntervalLimits, IntervalMotion, direction_combinations
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.joints import JointLimits

from .example_robots import legged_robot, packaged_urdf
from .free_floating import RATE_NOISE, float_freely, measured
from .legged_robot import LeggedRobot, simulate_movements

VISCOUS, COULOMB, TORQUE_NOISE = 0.8, 1.2, 0.1  # N m s/rad, N m, N m
BOX = pin.Inertia(1.5, np.array([0.3, 0.02, 0.04]), np.diag([0.004, 0.005, 0.006]))  # in the frame of the forearm


def write_urdfs(folder: Path, truth: RobotModel, name: str, rng: np.random.Generator, friction: str = "") -> None:
    """Write the URDF of the true robot, with an element for the friction of each joint, and a wrong URDF without it.

    Raises
    ------
    OutputError
        One of the files already exists, or cannot be written.
    """
    for file in ("truth.urdf", name):
        check_file(folder / file)
    write_file(folder / "truth.urdf", truth.urdf.replace("<limit ", f"{friction}<limit ").encode())
    write_file(folder / name, write_urdf(truth, perturb(truth, rng)).encode())


def arm(folder: Path, seconds: float) -> None:
    """Write the files of the arm, which moves along sums of sines."""
    truth, rng = load_model(packaged_urdf("example_arm")), np.random.default_rng(0)
    friction = f'<dynamics damping="{VISCOUS}" friction="{COULOMB}"/>'
    write_urdfs(folder, truth, "robot.urdf", rng, friction)
    for name, motion, held in (("run1_bag", 1, None), ("run2_bag", 2, None), ("box_bag", 3, BOX)):
        write_bag(arm_recording(truth, np.random.default_rng(motion), seconds, held), folder / name)


def arm_recording(truth: RobotModel, rng: np.random.Generator, seconds: float, held: pin.Inertia | None) -> Recording:
    """Return a noisy recording at 100 Hz of a random motion and its torques; the last link carries ``held``."""
    time = np.arange(0.0, seconds, 0.01)
    q, v, a = sines(time, truth.limits, rng)
    model = pin.Model(truth.pinocchio)
    if held is not None:
        model.inertias[model.njoints - 1] += held
    data = model.createData()
    torque = np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
    torque += VISCOUS * v + COULOMB * np.sign(v) + TORQUE_NOISE * rng.normal(size=v.shape)
    noisy = q + 1e-5 * rng.normal(size=q.shape)
    return Recording(truth.joint_names, time, noisy, torque, velocity=v + 1e-3 * rng.normal(size=v.shape))


def sines(time: Array, limits: JointLimits, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Random positions, velocities and accelerations ``(N, n)`` within 70 % of the range and 90 % of the speed."""
    lower, upper = limits.lower, limits.upper
    frequencies = 2 * np.pi * rng.uniform(0.1, 0.45, size=(len(lower), 3))
    amplitudes = rng.dirichlet(np.ones(3), size=len(lower)) * 0.35 * (upper - lower)[:, None]
    peak_speed = (amplitudes * frequencies).sum(axis=1)
    frequencies *= np.minimum(1.0, 0.9 * limits.velocity / peak_speed)[:, None]
    phases = time[:, None, None] * frequencies + rng.uniform(0, 2 * np.pi, size=frequencies.shape)
    q = 0.5 * (lower + upper) + (amplitudes * np.sin(phases)).sum(axis=2)
    v = (amplitudes * frequencies * np.cos(phases)).sum(axis=2)
    return q, v, -(amplitudes * frequencies**2 * np.sin(phases)).sum(axis=2)


def floating(folder: Path, seconds: float) -> None:
    """Write the files of the satellite with two arms and three wheels of 1 kg m^2; axes may reverse every second."""
    wheels = {f"wheel_{axis}": WheelOptions() for axis in "xyz"}
    options = RobotOptions(base="free", drive_terms=(), gravity=(0.0, 0.0, 0.0), wheels=wheels)
    truth = load_model(packaged_urdf("space_robot"), options)
    write_urdfs(folder, truth, "satellite.urdf", np.random.default_rng(0))
    limits, joints = motion_limits(truth), truth.joints
    for seed, name in enumerate(("flight1", "flight2")):
        rng = np.random.default_rng(seed)
        directions = direction_combinations(rng.permutation(joints + len(wheels)).tolist(), int(seconds))
        start, ranges = IntervalLimits.from_directions(directions[:, :joints], limits, 1.0).random(rng)
        start, ranges = np.append(start, np.zeros(3)), np.append(ranges, np.full(3, 3 * np.pi))
        motion = IntervalMotion(directions, start, ranges, 1.0)
        flight = float_freely(truth, truth.body_prior, motion.trajectory, 50.0)
        recording = measured(truth, flight, RATE_NOISE, rng, name)
        write_npz(recording, folder / f"{name}.npz", overwrite=False)


def legged(folder: Path, seconds: float) -> None:
    """Write the files of the simulator's lower-limb exoskeleton on two force plates."""
    robot, seconds_each = legged_robot("biped"), 1.2
    truth = load_model(robot.urdf, RobotOptions(base="free", drive_terms=()))
    write_urdfs(folder, truth, "robot.urdf", np.random.default_rng(0))
    for seed, name in enumerate(("stand1_bag", "stand2_bag")):
        movement = MovementOptions(movements=max(int(seconds / seconds_each), 2), seconds=seconds_each)
        simulated = LeggedRobot(robot, LeggedRobotOptions(seed=seed, movement=movement))
        write_bag(simulate_movements(simulated, state_hz=100.0, name=name), folder / name)


_ROBOT_WRITERS = {"arm": arm, "floating": floating, "legged": legged}


def main() -> int:
    """Write the files of one robot and print their names; return the exit status, 2 if writing fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", choices=_ROBOT_WRITERS)
    parser.add_argument("--folder", type=Path, default=Path(), help="output folder (default: current folder)")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each recording [s]")
    arguments = parser.parse_args()
    try:
        before = {*arguments.folder.glob("*")}
        _ROBOT_WRITERS[arguments.robot](arguments.folder, arguments.seconds)
        print("written:", *sorted(str(path) for path in {*arguments.folder.glob("*")} - before))
    except InertidError as error:
        print(f"recordings: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
