"""Settings for the calibration of a robot, derived from its URDF: held joints, mounting, type of effort."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lxml import etree

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.excitation.constraints.motion_constraints import check_friction, surroundings
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.recorded_joints import proposed_names
from inertid_ros.robot.urdf import joints as urdf_joints, parsing

# Quantities that drivers report as effort: torque of the joint, or of the motor behind its gear [N m or N]; current of
# the motor [A]; torque minus the gravity torque that the driver computes; none, but drives follow position commands.
# docs/robots.md has the sources.
TORQUE, CURRENT, WITHOUT_GRAVITY, COMMANDS = "torque", "current", "gravity_compensated", "position_command"


@dataclass(frozen=True)
class KnownDriver:
    """ROS driver of some robots, and the patterns of names that identify these robots.

    Attributes
    ----------
    name, joints : regular expressions for the robot's name and for the names of most of its joints.
    effort : quantity that the driver reports as effort; empty if the user has to check the quantity.
    controller : name of the driver's trajectory controller; empty if there is none.
    """

    robots: str
    name: str
    joints: str
    effort: str
    about: str
    controller: str = ""


KNOWN_DRIVERS = (
    KnownDriver("Universal Robots", "", r"(shoulder_pan|shoulder_lift|elbow|wrist_[123])_joint$", CURRENT,
        "ur_robot_driver reports motor currents; since 2026 it may report torque without gravity instead, see"
        " --effort gravity_compensated; its parameter use_currents_as_efforts chooses",
        "scaled_joint_trajectory_controller"),
    KnownDriver("Franka", "", r"(panda|fer|fr3)(v\d)?_joint[1-7]$", TORQUE,
        "franka_ros2 reports the torque measured behind the gears"),
    KnownDriver("KUKA LBR", r"(?i)iiwa|lbr|lwr", r"(joint|a)_?\d$", "",
        "some drivers report external torque, which excludes gravity: check the effort at rest",
        "joint_trajectory_controller"),
    KnownDriver("xArm", r"(?i)xarm|lite6|uf850|uf_robot", r"joint_?[1-7]$", "",
        "the arm lacks torque sensors, and the driver reports estimates: check the effort at rest"),
    KnownDriver("Unitree", r"(?i)^(a1|aliengo|b1|b2|g1|go1|go2|h1|laikago|z1)(\W|_|$)", r"(joint\d*|_\w+)$", TORQUE,
        "tau_est of the motors is torque estimated from currents; publish it as effort"),
    KnownDriver("SO-100 and SO-101", r"(?i)so[-_]?(arm)?[-_]?10[01]",
        r"^(shoulder_(pan|lift)|(elbow|wrist)_flex|wrist_roll|gripper)$", COMMANDS,
        "the servos report load and current, not torque"))
_MIN_MATCHING_SHARE = 0.6  # share of joint names that must match


def known_driver(robot: str, joints: Sequence[str]) -> KnownDriver | None:
    """Find the driver from the names of the robot and of its movable joints; None if the driver is unknown."""
    for driver in KNOWN_DRIVERS:
        matching = sum(bool(re.search(driver.joints, name)) for name in joints)
        if joints and re.search(driver.name, robot) and matching >= _MIN_MATCHING_SHARE * len(joints):
            return driver
    return None


_FINGER = re.compile(r"(?i)finger|gripper|knuckle|jaw|claw|thumb|index|middle|ring_|little|pinky|(hand|palm)_")
_WRIST = re.compile(r"(?i)wrist|yaw|pitch|roll")
_WHEEL = re.compile(r"(?i)wheel|caster")


@dataclass(frozen=True)
class Setting:
    """Configuration value with its dotted key and a one-line reason."""

    key: str
    value: object
    reason: str


_SLOW = "for a supervised first calibration; then 1.0, as a slow motion hardly excites inertia"


@dataclass(frozen=True)
class RobotSetup:
    """Settings of a robot, and notes on assumptions to check before it moves."""

    model: RobotModel
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
    driver: KnownDriver | None


def robot_setup(urdf: Path, effort: str = "", mounting: str = "", locked_joints: Mapping[str, float] | None = None,
        recorded_names: Sequence[str] = ()) -> RobotSetup:
    """Derive settings for the calibration of a robot from its URDF.

    Raises ModelError: the URDF is broken, a joint to hold does not exist, the efforts cannot be used, or the recorded
    names belong to another robot.

    Parameters
    ----------
    effort : quantity that joint states report as effort; empty takes the quantity of a known driver.
    mounting : as ``excitation.mounting``; empty assumes a floor.
    locked_joints : joints to hold, with their positions [rad or m].
    recorded_names : joint names in recordings and controllers; empty if unknown.
    """
    root, locked = parsing.parse_description(parsing.read_description(urdf)), locked_joints or {}
    held, notes = list(_held(root, locked, recorded_names)), list[str]()
    try:
        model = load_model(urdf, RobotOptions(locked_joints={name: position for name, position, _ in held}))
    except ModelError as error:
        if len(held) == len(locked):
            raise
        held = held[: len(locked)]
        model = load_model(urdf, RobotOptions(locked_joints=locked))
        notes.append(f"grippers and wheels are not held: {error}")
    driver = known_driver(model.name, model.joint_names)
    settings = [Setting("speed_scale", 0.1, _SLOW)]
    settings += [Setting("robot.locked_joints", {name: position}, reason) for name, position, reason in held]
    settings += _names(model, recorded_names)
    quantity = effort or (driver.effort if driver is not None else "")
    reasons = {WITHOUT_GRAVITY: "the controller subtracts gravity", COMMANDS: "torque follows from commands"}
    if quantity in reasons:
        settings.append(Setting("robot.effort", quantity, reasons[quantity]))
    notes += [f"efforts: {_effort(quantity, driver)}", *_limbs(root)]
    origin = "as given" if mounting else "assumed"
    try:
        limits = motion_limits(model)
        around = surroundings(model, limits, ExcitationOptions(mounting=mounting or "floor"))
        settings.append(Setting("excitation.mounting", mounting or "floor", f"{origin}; {around.floor}"))
        notes += [*around.others, *(finding.remedy for finding in around.findings)]
        notes += collision_shapes(model)[1].values()
        check_friction(model, limits, 0.5 * (limits.lower + limits.upper))
    except ExcitationError as error:  # identification from a recording is still possible
        notes.append(f"a motion cannot be planned yet: {error}")
    return RobotSetup(model, tuple(settings), tuple(notes), driver)


def _held(
        root: etree._Element, locked: Mapping[str, float], recorded: Sequence[str]) -> Iterator[tuple[str, float, str]]:
    """Joints to hold, with position [rad or m] and reason.

    A recording of an arm lacks the other joints of a whole robot. They are held, unless they move recorded joints.
    """
    for name, position in locked.items():
        yield name, position, "as given"
    joints = parsing.by_name(root, "joint")
    movable = {name: joint for name, joint in joints.items() if joint.get("type") in parsing.MOVABLE}
    leaders = urdf_joints.held_leaders(root, locked)
    for name, position in leaders.items():
        if name not in locked and name not in recorded:  # identification carries it if it moves
            yield name, position, "other joints mimic it"
    moved = _moved_joints(joints)
    fingers, settled = _fingers(movable, moved), {*locked, *leaders}
    settled |= set(urdf_joints.followers(root, {*settled, *recorded}))
    part = bool(recorded) and set(recorded) < set(movable)
    for name, joint in movable.items():
        reason = (
            "looks like a gripper or a hand" if name in fingers
            else "looks like a wheel of the base" if _WHEEL.search(name)
            else "not in the recording" if part and moved[name].isdisjoint(recorded) else "")  # fmt: skip
        if reason and name not in settled:
            yield name, float(np.clip(0.0, *urdf_joints.position_range(joint))), reason


def _moved_joints(joints: Mapping[str, etree._Element]) -> dict[str, set[str]]:
    """Movable joints that each joint moves, with itself."""
    above = {parsing.ends(joint)[1]: name for name, joint in joints.items()}  # joint above each link
    moved: dict[str, set[str]] = {name: set() for name in joints}
    for name, joint in joints.items():
        if joint.get("type") in parsing.MOVABLE:
            mover: str | None = name
            while mover is not None and name not in moved[mover]:
                moved[mover].add(name)
                mover = above.get(parsing.ends(joints[mover])[0])
    return moved


def _fingers(movable: Mapping[str, etree._Element], moved: Mapping[str, set[str]]) -> set[str]:
    """Joints named like fingers, if all joints behind them are named so, too; empty if no other joint remains."""
    named = {name for name in movable if _FINGER.search(name) and not _WRIST.search(name)}
    fingers = {name for name in named if moved[name] <= named}
    return set() if len(fingers) == len(movable) else fingers


def _names(model: RobotModel, recorded: Sequence[str]) -> list[Setting]:
    """Setting that maps recorded joint names to the robot's joints; empty if it is not needed."""
    missing = [name for name in model.joint_names if name not in recorded]
    if not recorded or not missing:
        return []
    names = proposed_names([name for name in recorded if name not in model.joint_names], missing)
    if not names:
        raise ModelError(
            f"the recording lacks {', '.join(missing[:3])}; its joints are {', '.join(recorded[:6])}; give a recording"
            " of this robot, or hold the missing joints with --lock")
    return [Setting("robot.joint_names", names, "joints have other names in the recording")]


def _effort(quantity: str, driver: KnownDriver | None) -> str:
    """Note on the quantity of the efforts and on the next step."""
    about = f" ({driver.robots}: {driver.about})" if driver is not None else ""
    return {
        WITHOUT_GRAVITY: "torque in N m or N without gravity, so that masses follow from accelerations alone; torque"
        f" or currents determine them better{about}",
        COMMANDS: "none, torque follows from position commands: give the gains of every joint in robot.command_kp and"
        " robot.command_kd, and the topic of the commands in topics.commands or topics.controller_state"
        f" (docs/known.md){about}",
        TORQUE: f"torque in N m or N{about}",
        CURRENT: "currents: give gear ratio times torque constant of every joint in robot.effort_scale, or identify"
        f" gains with a known load (docs/known.md){about}",
        "": f"assumed to be torque in N m or N{about}; give --effort, and check one slow motion with inertid validate",
    }[quantity]


def _limbs(root: etree._Element) -> list[str]:
    """Note if more than one limb begins at the base."""
    joints = root.findall("joint")
    children, names = {parsing.ends(joint)[1] for joint in joints}, parsing.by_name(root, "link")
    resting, limbs = [name for name in names if name not in children], 0
    while resting:
        link = resting.pop()
        for joint in joints:
            if parsing.ends(joint)[0] == link:
                if joint.get("type") in parsing.MOVABLE:
                    limbs += not _WHEEL.search(str(joint.get("name")))
                else:
                    resting.append(parsing.ends(joint)[1])
    if limbs <= 1:
        return []
    return [f"{limbs} limbs begin at its base; the base is assumed to be bolted down; a robot on its feet needs a force"
        " plate or another sensor at its base, and robot.base: free (docs/floating_base.md)"]
