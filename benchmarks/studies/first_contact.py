"""Steps of a new user with a robot: init, two motions, two simulated recordings, identify; with options and messages.

All commands run on the command line, in separate processes. The user has the published URDF; the simulated robot has
other bodies, friction, rotors and offsets of its joints, and noise.
"""

import itertools
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree
from studies.mujoco_contacts import Contacts, contacts_of

from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.excitation.constraints.motion_constraints import surroundings
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import load_motion
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

# The held-out motion must only be different: the best of four random starts, not improved.
HELD_OUT = ("--set=excitation.seed=1", "--set=excitation.starts=4", "--set=excitation.improved=0")
MOTIONS = (("motion1", ()), ("motion2", HELD_OUT))
LONGEST_S = 1800.0
_STRENGTH, _WEAKEST, _FASTEST = 5.0, 0.1, 10.0  # drives: times gravity, share of the strongest joint, rad/s
_FAULTS = ("Traceback", "unexpected ", "RuntimeWarning", "inertid: error")
_GROUPS = {
    "arm": (
        "ur_description/urdf/ur10_robot.urdf", "ur_description/urdf/ur5_robot.urdf",
        "panda_description/urdf/panda.urdf", "xarm_description/urdf/xarm7.urdf", "z1_description/urdf/z1.urdf",
        "kinova_description/robots/kinova.urdf", "so_arm_description/urdf/so101.urdf",
    ),
    "hand": ("allegro_hand_description/urdf/allegro_right_hand.urdf",),
    "finger": ("finger_edu_description/robots/finger_edu.urdf",),
    "quadruped": (
        "go2_description/urdf/go2.urdf", "a1_description/urdf/a1.urdf", "anymal_c_simple_description/urdf/anymal.urdf",
        "hyq_description/robots/hyq_no_sensors.urdf", "solo_description/robots/solo12.urdf",
    ),
    "biped": ("bolt_description/robots/bolt.urdf",),
    "humanoid": (
        "g1_description/urdf/g1_29dof_rev_1_0.urdf", "talos_data/robots/talos_reduced.urdf",
        "icub_description/robots/icub_reduced.urdf",
    ),
    "mobile manipulator": ("tiago_description/robots/tiago.urdf",),
    "two arms": ("baxter_description/urdf/baxter.urdf",),
}  # fmt: skip
ROBOTS = {Path(path).stem: (group, path) for group, paths in _GROUPS.items() for path in paths}
# Options that a message for the named robot made the user add; all other robots run without options.
ADDED: dict[str, dict[str, tuple[str, ...]]] = {
    # "the friction of its <dynamics>, 12 N m, uses up the effort limit of a motion ...; hold with"
    "allegro_right_hand": {
        "init": tuple(f"--lock={joint}=0.7" for joint in ("joint_3.0", "joint_15.0", "joint_7.0", "joint_11.0")),
    },
    # "which the distance of 'r_shoulder_1' from 'r_upper_arm' keeps small (...); give the motion more room if it is
    # safe (excitation.collision.clearance_m)"; the second motion also needs the default number of starts.
    "icub_reduced": {
        "excite": (
            "--set=excitation.collision.clearance_m=0.002", "--set=excitation.starts=48", "--set=excitation.improved=3",
        ),
    },  # fmt: skip
}


@dataclass(frozen=True)
class Command:
    """One command with its result.

    Attributes
    ----------
    name : str
        Command and purpose.
    status : int
        Exit status.
    seconds : float
        Wall-clock time.
    told : tuple of str
        Lines on stderr.
    """

    name: str
    status: int
    seconds: float
    told: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """Lines that a user must not see."""
        return tuple(line for line in self.told if any(fault in line for fault in _FAULTS))


@dataclass
class Visit:
    """Results of one robot, as plain values for a file."""

    robot: str
    group: str
    joints: int = 0
    held: int = 0
    floor: str = ""
    commands: list[dict[str, Any]] = field(default_factory=list)
    conditions: list[float] = field(default_factory=list)
    contacts: list[dict[str, Any]] = field(default_factory=list)
    verdict: str = ""
    reasons: list[str] = field(default_factory=list)
    held_out: list[float | None] = field(default_factory=list)
    ended: str = ""


def visit(name: str, folder: Path) -> Visit:
    """Run all steps with one robot, until a step fails; files and messages stay in the folder."""
    group, path = ROBOTS[name]
    found, urdf = Visit(name, group), example_urdf(path)
    folder.mkdir(parents=True, exist_ok=True)
    added = ADDED.get(name, {})

    def run(what: str, *arguments: object) -> bool:
        command = inertid(folder, what, [str(each) for each in (*arguments, *added.get(str(arguments[0]), ()))])
        found.commands.append({**asdict(command), "faults": command.faults})
        found.ended = "" if command.status in (0, 3) else f"{what}: {command.told[-1] if command.told else '?'}"
        return not found.ended

    if not run("init", "init", urdf, "--output", "robot.yaml", "--json"):
        return found
    seen = json.loads((folder / "init.out").read_text())
    found.joints = len(seen["joints"])
    found.held = sum(setting["key"] == "robot.locked_joints" for setting in seen["settings"])
    given = ("--urdf", urdf, "--config", "robot.yaml")
    for motion, options in MOTIONS:
        if not run(motion, "excite", *given, *options, "--output", motion):
            return found
        summary = json.loads((folder / motion / "excitation.json").read_text())
        found.conditions.append(summary["condition_number"])
        found.floor = summary["surroundings"][0]
    if not run("truth", "perturb", urdf, "--config", "robot.yaml", "--seed", 1, "--output", "truth.urdf"):
        return found
    try:
        balance(folder / "truth.urdf")
        found.contacts = [asdict(contacts) for contacts in recorded(urdf, folder)]
    except InertidError as error:
        found.ended = f"simulation: {error}"
        return found
    if not run("identify", "identify", "run1", *given, "--validate", "run2", "--output", "result"):
        return found
    report = json.loads((folder / "result" / "report.json").read_text())
    found.verdict, found.reasons = report["verdict"], [reason["message"] for reason in report["reasons"]]
    errors = report["prior"]["validation"], report["validation"]
    found.held_out = [each["relative_error"] for each in errors]
    return found


def inertid(folder: Path, name: str, arguments: Sequence[str]) -> Command:
    """Run the command line in a folder, and keep its outputs in this folder."""
    began = time.monotonic()
    done = subprocess.run(
        ["inertid", *arguments, "--force"], cwd=folder, capture_output=True, text=True, timeout=LONGEST_S
    )
    seconds = time.monotonic() - began
    (folder / f"{name}.out").write_text(done.stdout)
    (folder / f"{name}.err").write_text(done.stderr)
    lines = (line.removeprefix("inertid: ") for line in done.stderr.splitlines())
    return Command(name, done.returncode, seconds, tuple(line for line in lines if line.strip()))


def balance(urdf: Path) -> None:
    """Replace inconsistent inertias, which MuJoCo refuses, by inertias of flat bodies; the truth is arbitrary."""
    tree = etree.parse(str(urdf))
    for tensor in tree.iterfind(".//inertial/inertia"):
        values = np.array([[float(tensor.get(f"i{min(a, b)}{max(a, b)}", "0")) for a in "xyz"] for b in "xyz"])
        moments, axes = np.linalg.eigh(values)
        if moments.min() <= 0 or moments[2] > moments[0] + moments[1]:
            moments = np.maximum(moments, 1e-9)
            moments[:2] *= max(1.001 * moments[2] / moments[:2].sum(), 1.0)
            values = axes * moments @ axes.T
            for (i, a), (j, b) in itertools.combinations_with_replacement(enumerate("xyz"), 2):
                tensor.set(f"i{a}{b}", repr(float(values[i, j])))
    tree.write(str(urdf))


def recorded(urdf: Path, folder: Path) -> Iterator[Contacts]:
    """Check each motion with MuJoCo, and record it with the simulated robot."""
    config = load_configuration(folder / "robot.yaml", ExcitationConfiguration)
    options = config.robot
    given, truth = load_model(urdf, options), load_model(folder / "truth.urdf", options)
    floor = surroundings(given, motion_limits(given, config.limits), config.excitation).floor_m
    for number, (motion, _) in enumerate(MOTIONS, start=1):
        plan = load_motion(folder / motion / "plan.yaml", motion_limits(given, config.limits))
        yield contacts_of(given, plan, floor, config.excitation.collision.mesh_folders)
        robot = _simulated(truth, given, plan.start)
        bag = folder / f"run{number}"
        for file in bag.glob("*") if bag.exists() else ():
            file.unlink()
        if bag.exists():
            bag.rmdir()
        write_bag(simulate(robot, plan, name=bag.name), bag)


def _simulated(truth: RobotModel, given: RobotModel, start: Array) -> SimulatedRobot:
    """True robot with a controller that uses the published robot.

    Friction and noise scale with effort limits: for a small robot with a limit of 1000 N m, friction would dominate.
    """
    limits, robot, data = truth.limits, truth.pinocchio, truth.pinocchio.createData()
    lower, upper = np.clip(limits.lower, -np.pi, np.pi), np.clip(limits.upper, -np.pi, np.pi)
    poses = np.random.default_rng(0).uniform(lower, upper, (50, len(start)))
    gravity = np.max([np.abs(pin.computeGeneralizedGravity(robot, data, pose)) for pose in poses], axis=0)
    effort = np.minimum(limits.effort, _STRENGTH * np.maximum(gravity, _WEAKEST * gravity.max()))
    velocity = np.minimum(limits.velocity, _FASTEST)
    scaled = replace(truth, limits=replace(limits, effort=effort, velocity=velocity))
    return SimulatedRobot(scaled, start=start)
