"""Recordings spoilt as drivers, exporters, configurations and users spoil them: one function for each mistake."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import attrs
import numpy as np
import pinocchio as pin
from support.robots.drawn_robots import ROBOTS, DrawnRobot, described_robot, drawn_motion, drawn_robot, joint_ranges

from inertid_ros.config.robot import LoadOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, mass_com_inertia
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.regressors.equations import load_torque
from inertid_ros.robot.body_changes import load_bodies
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel, load_model

VISIBLE = 0.5  # of a joint's RMS torque: what a wrong zero or name has to change of it to be a mistake at all
_LEAST_SHARE = 0.05  # of the largest torque of a joint, below which a joint shows nothing
_LOAD_CENTRE = (0.0, 0.1, 0.1)  # of a load in the frame of its link [m]
_POINT = from_mass_com_inertia(1.0, _LOAD_CENTRE, np.zeros((3, 3)))  # of a kilogram there
_TRIES = 20  # of joints, before a robot counts as one that cannot suffer a mistake
Rng = np.random.Generator


class ImpossibleMistakeError(Exception):
    """A robot has no joints that could suffer a mistake, or whose torque would show it."""


@dataclass(frozen=True)
class Case:
    """A robot with recordings of it; all come from one driver, so that a mistake spoils all of them alike.

    Attributes
    ----------
    name : str
    given : RobotModel
        The robot as its URDF describes it.
    bodies : ndarray, shape (nb, 10)
        What is known best of its bodies, for a driver that takes gravity out.
    train, held_out : tuple of Recording
    drives : tuple of str
        Joints whose efforts the URDF and friction explain at all; the others' could have any sign.
    robot : DrawnRobot or None
        What simulates other motions of the same robot.
    """

    name: str
    given: RobotModel
    bodies: Array
    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...]
    drives: tuple[str, ...]
    robot: DrawnRobot | None = None

    def changed(self, change: Callable[[Recording], Recording]) -> "Case":
        """The same with all recordings changed alike."""
        train, held_out = (tuple(map(change, group)) for group in (self.train, self.held_out))
        return replace(self, train=train, held_out=held_out)

    def torque(self, recording: Recording) -> Array:
        """``(N, n)`` torque of gravity by the URDF, of a few samples."""
        rows = recording.position[:: max(1, len(recording) // 100)]
        q = rows[:, [recording.joint_names.index(name) for name in self.given.joint_names]]
        return rigid_torque(self.given, self.given.body_prior, q, np.zeros_like(q), np.zeros_like(q))

    @property
    def simulated(self) -> DrawnRobot:
        """What simulates other motions; ImpossibleMistakeError if nothing does."""
        if self.robot is None:
            raise ImpossibleMistakeError
        return self.robot


def drawn_case(name: str, rng: Rng) -> Case:
    """A robot of :data:`~support.robots.drawn_robots.ROBOTS` with two recordings of different motions."""
    robot = drawn_robot(described_robot(name, rng), rng)
    train, held_out = (robot.moved(rng, f"{robot.given.name} {index}") for index in (1, 2))
    return Case(robot.given.name, robot.given, robot.bodies, (train,), (held_out,), robot.given.joint_names, robot)


@dataclass(frozen=True)
class Mistake:
    """A case with a mistake.

    Attributes
    ----------
    drawn : str
        Joints and magnitudes.
    causes : tuple of str
        Those that name it rightly; empty where there is nothing to name, and the result is to be used.
    right : tuple of Recording
        Held-out recordings as they are to be predicted, where it is the URDF that is wrong; else those of the clean
        case.
    clean : Case or None
        The same motions of the same robot without the mistake, where these are not those of the clean case.
    """

    drawn: str
    case: Case
    causes: tuple[str, ...] = ()
    right: tuple[Recording, ...] = ()
    clean: Case | None = None


def one_sign(case: Case, rng: Rng) -> Mistake:
    joint = str(rng.choice(case.drives))
    return Mistake(joint, _scaled(case, {joint: -1.0}), ("effort_sign",))


def all_signs(case: Case, rng: Rng) -> Mistake:
    return Mistake("", _scaled(case, dict.fromkeys(case.given.joint_names, -1.0)), ("effort_sign",))


def magnitudes(case: Case, rng: Rng) -> Mistake:
    return Mistake("", case.changed(lambda r: replace(r, effort=np.abs(r.effort))), ("effort_magnitude",))


def sign_bit(case: Case, rng: Rng) -> Mistake:
    """Bus servos whose sign is a bit that the driver reads as a number."""
    largest = max(float(np.abs(recording.effort).max()) for recording in (*case.train, *case.held_out))
    bit = float(rng.uniform(1.2, 4.0)) * largest  # beyond all that is measured
    spoilt = case.changed(lambda r: replace(r, effort=np.where(r.effort < 0, bit - r.effort, r.effort)))
    return Mistake(f"{bit / largest:.1f} times the largest", spoilt, ("effort_magnitude",))


def axis_turned(case: Case, rng: Rng) -> Mistake:
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: reversed_axis(r, some[0]), 1)
    return Mistake(joint, spoilt, ("joint_axis",), spoilt.held_out)


def position_reversed(case: Case, rng: Rng) -> Mistake:
    """The position of a joint alone has the opposite sign, as if its encoder were mounted the other way."""
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: _position_reversed(r, some[0]), 1)
    return Mistake(joint, spoilt, ("joint_axis",), spoilt.held_out)


def absolute_angle(case: Case, rng: Rng) -> Mistake:
    """A parallel linkage: drive and encoder of a joint are on the link before its parent."""
    names, turns = case.given.joint_names, _turning(case)
    pairs = [(joint.parent, index) for index, joint in enumerate(case.given.tree) if joint.parent >= 0]
    pairs = [pair for pair in pairs if turns[list(pair)].all()]
    if not pairs:
        raise ImpossibleMistakeError
    one, other = (names[index] for index in pairs[int(rng.integers(len(pairs)))])

    def change(recording: Recording) -> Recording:
        before, after = recording.joint_names.index(one), recording.joint_names.index(other)
        position, effort = recording.position.copy(), recording.effort.copy()
        position[:, after] += position[:, before]
        effort[:, before] -= effort[:, after]
        return replace(recording, position=position, effort=effort, velocity=None, acceleration=None)

    spoilt = case.changed(change)
    return Mistake(f"{other} with {one}", spoilt, ("absolute_angle",), spoilt.held_out)


def drives_exchanged(case: Case, rng: Rng) -> Mistake:
    if len(case.drives) < 2:
        raise ImpossibleMistakeError
    pair = [str(name) for name in rng.permutation(case.drives)[:2]]
    return Mistake(" and ".join(pair), case.changed(lambda r: _exchanged_efforts(r, pair)), ("effort_exchange",))


def efforts_shifted(case: Case, rng: Rng) -> Mistake:
    """Efforts stand in the column of the next joint."""
    if len(case.drives) < 3:
        raise ImpossibleMistakeError
    spoilt = case.changed(lambda r: replace(r, effort=np.roll(r.effort, 1, axis=1)))
    return Mistake("", spoilt, ("effort_exchange",))


def names_reversed(case: Case, rng: Rng) -> Mistake:
    """Names from the last joint to the first, values from the first to the last."""
    if len(case.drives) < 3:
        raise ImpossibleMistakeError
    spoilt = case.changed(lambda r: replace(r, joint_names=r.joint_names[::-1]))
    return Mistake("", spoilt, ("joint_exchange",))


def unit_changed(case: Case, rng: Rng) -> Mistake:
    """A program that records goes over to degrees, or to N mm."""
    share, cause = float(rng.uniform(0.3, 0.7)), str(rng.choice(["position_unit", "effort_unit"]))
    if cause == "position_unit" and not _turning(case).all():
        raise ImpossibleMistakeError

    def change(recording: Recording) -> Recording:
        late = (recording.time > recording.time[0] + share * recording.duration)[:, None]
        if cause == "effort_unit":
            return replace(recording, effort=np.where(late, 1e3 * recording.effort, recording.effort))
        other = in_unit(recording, 180 / np.pi)
        velocity = None if recording.velocity is None else np.where(late, other.velocity, recording.velocity)
        return replace(recording, position=np.where(late, other.position, recording.position), velocity=velocity)

    return Mistake(f"{cause} from {share:.2f}", case.changed(change), (cause,))


def names_exchanged(case: Case, rng: Rng) -> Mistake:
    pair, spoilt = _visible(case, rng, lambda some: lambda r: _exchanged_names(r, some), 2)
    return Mistake(" and ".join(pair), spoilt, ("joint_exchange",))


def degrees(case: Case, rng: Rng) -> Mistake:
    if not _turning(case).any():
        raise ImpossibleMistakeError
    turning = dict(zip(case.given.joint_names, _turning(case), strict=True))

    def change(recording: Recording) -> Recording:
        return in_unit(recording, [180 / np.pi if turning.get(name) else 1.0 for name in recording.joint_names])

    return Mistake("", case.changed(change), ("position_unit",))


def millimetres(case: Case, rng: Rng) -> Mistake:
    if _turning(case).all():
        raise ImpossibleMistakeError
    joint = str(rng.choice(np.array(case.given.joint_names)[~_turning(case)]))
    return Mistake(joint, case.changed(partial(in_millimetres, joint=joint)), ("position_unit",))


def motor_currents(case: Case, rng: Rng) -> Mistake:
    """In amperes or milliamperes."""
    names, unit = case.given.joint_names, float(rng.choice([1.0, 1e3]))
    # Gear ratios times torque constants of drives lie between some N m and some tens of N m per ampere.
    constants = np.exp(rng.uniform(np.log(3), np.log(30), len(names)))
    drawn = f"{constants.min():.1f} to {constants.max():.1f} N m/{'A' if unit == 1 else 'mA * 1000'}"
    return Mistake(drawn, _scaled(case, dict(zip(names, unit / constants, strict=True))), ("effort_current",))


def newton_millimetres(case: Case, rng: Rng) -> Mistake:
    return Mistake("", _scaled(case, dict.fromkeys(case.given.joint_names, 1e3)), ("effort_unit",))


def gravity_compensated(case: Case, rng: Rng) -> Mistake:
    _needs_gravity(case)
    return Mistake("", case.changed(lambda r: without_gravity(case.given, case.bodies, r)), ("gravity_compensated",))


def gravity_turned(case: Case, rng: Rng) -> Mistake:
    """Mounted upside down or on a wall, and not said so."""
    _needs_gravity(case)
    tilt = rng.normal(size=2)
    sideways = 9.81 * np.append(tilt / np.linalg.norm(tilt), 0.0)
    gravity = np.array([0.0, 0.0, 9.81]) if rng.random() < 0.5 else sideways
    drawn = "[" + ", ".join(f"{x:.1f}" for x in gravity) + "]"
    return Mistake(drawn, _mounted(case, tuple(gravity.tolist())), ("gravity_direction",))


def zero_turned(case: Case, rng: Rng) -> Mistake:
    angle = float(rng.choice([-180, -90, 90, 180]))
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: _turned(r, some[0], angle), 1)
    return Mistake(f"{joint} {angle:+.0f} degrees", spoilt, ("position_offset", "beyond_limits"), spoilt.held_out)


def zero_anywhere(case: Case, rng: Rng) -> Mistake:
    angle = float(rng.uniform(20, 160) * rng.choice([-1, 1]))
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: _turned(r, some[0], angle), 1)
    return Mistake(f"{joint} {angle:+.0f} degrees", spoilt, ("position_offset", "beyond_limits"), spoilt.held_out)


def short(case: Case, rng: Rng) -> Mistake:
    seconds = float(rng.uniform(0.2, 0.8))
    return Mistake(f"{seconds:.2f} s", case.changed(lambda r: _cut(r, seconds)), ("short_recording",))


def delay(case: Case, rng: Rng) -> Mistake:
    seconds = float(rng.uniform(0.15, 0.4) * rng.choice([-1, 1]))
    return Mistake(f"{1e3 * seconds:.0f} ms", case.changed(lambda r: _delayed(r, seconds)), ("delay",))


def time_unit(case: Case, rng: Rng) -> Mistake:
    unit, factor = ("ms", 1e3) if rng.random() < 0.5 else ("ns", 1e9)
    return Mistake(unit, case.changed(lambda r: replace(r, time=factor * r.time)), ("time_unit",))


def validated_with_itself(case: Case, rng: Rng) -> Mistake:
    return Mistake("", replace(case, held_out=case.train), ("held_out_not_new",))


def locked_joint_moves(case: Case, rng: Rng) -> Mistake:
    if len(case.given.joint_names) < 2:
        raise ImpossibleMistakeError
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: r, 1, lambda some: _locked(case, some[0]))
    return Mistake(joint, spoilt, ("locked_joint_moves",))


def counterbalance(case: Case, rng: Rng) -> Mistake:
    _needs_gravity(case)
    joint, share = _shoulder(case), float(rng.uniform(0.8, 1.6))
    spoilt = counterbalanced(case, joint, share)
    return Mistake(f"{joint}, {share:.1f} of its weight", spoilt, ("counterbalance",), spoilt.held_out)


def silent_effort(case: Case, rng: Rng) -> Mistake:
    joint = str(rng.choice(case.given.joint_names))
    return Mistake(joint, case.changed(lambda r: _silent(r, joint, 0.9)), ("no_effort",))


def clipped_effort(case: Case, rng: Rng) -> Mistake:
    """The effort of a joint ends at a limit of its driver."""
    joint, share = str(rng.choice(case.drives)), float(rng.uniform(0.1, 0.4))
    column = case.train[0].joint_names.index(joint)
    limit = float(np.quantile(np.abs(case.train[0].effort[:, column]), 1 - share))

    def clip(recording: Recording) -> Recording:
        effort = recording.effort.copy()
        effort[:, column] = np.clip(effort[:, column], -limit, limit)
        return replace(recording, effort=effort)

    return Mistake(f"{joint}, {share:.0%}", case.changed(clip), ("saturated",))


def drives_off(case: Case, rng: Rng) -> Mistake:
    """Drives report no torque from some time on, in a mode without torques."""
    if len(case.given.joint_names) < 2:
        raise ImpossibleMistakeError
    share = float(rng.uniform(0.4, 0.8))

    def end(recording: Recording) -> Recording:
        off = recording.time > recording.time[0] + share * recording.duration
        return replace(recording, effort=np.where(off[:, None], 0.0, recording.effort))

    return Mistake(f"from {share:.2f}", replace(case, train=tuple(map(end, case.train))), ("dropouts",))


def wrong_rate(case: Case, rng: Rng) -> Mistake:
    """Rows are stamped for another rate; velocities are measured."""
    factor = float(rng.choice([0.25, 0.4, 0.5, 0.8, 1.25, 2.0, 2.5, 4.0]))

    def stamped(recording: Recording) -> Recording:
        speed = np.gradient(recording.position, recording.time, axis=0)
        velocity = speed if recording.velocity is None else recording.velocity
        return replace(recording, time=factor * recording.time, velocity=velocity, acceleration=None)

    return Mistake(f"stamps times {factor:g}", case.changed(stamped), ("time_unit",))


def coupled_drives(case: Case, rng: Rng) -> Mistake:
    """Two joints of a differential wrist, whose friction follows sum or difference of their speeds."""
    names, undeclared = case.given.joint_names, {}
    if case.given.options.couplings:
        undeclared = case.given.options.couplings
        given = load_model(case.given.urdf, attrs.evolve(case.given.options, couplings={}))
        return Mistake(", ".join(undeclared), replace(case, given=given), ("coupling",))
    robot = case.simulated
    behind = [(joint.parent, index) for index, joint in enumerate(case.given.tree) if joint.parent >= 0]
    behind = [pair for pair in behind if _turning(case)[list(pair)].all()]
    if not behind:
        raise ImpossibleMistakeError
    pair, ratio = list(behind[int(rng.integers(len(behind)))]), np.array([1.0, rng.choice([-1.0, 1.0])])
    friction = float(rng.uniform(1.0, 3.0)) * max(robot.coulomb[pair].max(), robot.viscous[pair].max())

    def change(recording: Recording) -> Recording:
        speed = np.gradient(recording.position[:, pair] @ ratio, recording.time)
        effort = recording.effort.copy()
        effort[:, pair] += friction * (np.tanh(speed / 1e-2) + speed)[:, None] * ratio
        return replace(recording, effort=effort)

    spoilt = case.changed(change)
    return Mistake(f"{names[pair[0]]} {ratio[1]:+.0f} {names[pair[1]]}", spoilt, ("coupling",), spoilt.held_out)


def unknown_gripper(case: Case, rng: Rng) -> Mistake:
    """No mistake: the robot holds something that the URDF does not know."""
    link, kilograms = _payload(case, rng)
    spoilt = with_gripper(case, link, kilograms)
    return Mistake(f"{kilograms:.2g} kg on {link}", spoilt, (), spoilt.held_out)


def placeholder_inertias(case: Case, rng: Rng) -> Mistake:
    """No mistake of the recording: the URDF has the same inertia for all links."""
    moment = float(rng.choice([1e-4, 1e-3, 1e-2, 0.1]))
    masses, centres, inertias = mass_com_inertia(case.given.consistent_body_prior)
    bodies = from_mass_com_inertia(masses, centres, 0 * inertias + moment * np.eye(3))
    return Mistake(f"{moment:g} kg m^2", replace(case, given=case.given.with_prior_bodies(bodies)))


def wrong_material(case: Case, rng: Rng) -> Mistake:
    """All masses of the URDF by one factor: a density of water or steel for another material."""
    factor = float(np.exp(rng.uniform(np.log(4), np.log(10)) * rng.choice([-1, 1])))
    given = case.given.with_prior_bodies(factor * case.given.consistent_body_prior)
    return Mistake(f"times {factor:.2g}", replace(case, given=given),
                   ("effort_current", "effort_unit", "mass_implausible"))  # fmt: skip


def payload_put_down(case: Case, rng: Rng) -> Mistake:
    """It is held for a part of the recording that is fitted."""
    link, kilograms = _payload(case, rng)
    loaded, share = with_gripper(case, link, kilograms), float(rng.uniform(0.25, 0.75))

    def put_down(empty: Recording, full: Recording) -> Recording:
        instant = empty.time[0] + share * empty.duration
        return replace(empty, effort=np.where(empty.time[:, None] < instant, full.effort, empty.effort))

    spoilt = replace(case, train=tuple(map(put_down, case.train, loaded.train)))
    return Mistake(f"{kilograms:.2g} kg on {link} until {share:.2f}", spoilt, ("load_changed",))


def leaned_on(case: Case, rng: Rng) -> Mistake:
    """Somebody leans on an end of the robot for some seconds, with a force that stays the same in the world."""
    model, names = case.given, case.given.joint_names
    body = int(rng.choice(model.end_bodies))
    begin, length = float(rng.uniform(0.1, 0.7)), float(rng.uniform(0.05, 0.25))
    effort = np.sqrt(np.mean(case.train[0].effort ** 2, axis=0))
    force = rng.normal(size=3)

    def push(recording: Recording) -> Array:
        """Torque ``(N, n)`` in the order of the model."""
        data, q = model.pinocchio.createData(), recording.position[:, [recording.joint_names.index(n) for n in names]]
        share = (recording.time - recording.time[0]) / recording.duration
        torque = np.zeros_like(q)
        for row in np.flatnonzero((share > begin) & (share < begin + length)):
            jacobian = pin.computeJointJacobian(model.pinocchio, data, q[row], body + 1)
            torque[row] = -jacobian[:3].T @ data.oMi[body + 1].rotation.T @ force
        return torque

    size = float((np.abs(push(case.train[0])).max(axis=0) / np.maximum(effort, _LEAST_SHARE * effort.max())).max())
    if size < 1e-9:
        raise ImpossibleMistakeError
    force = force * float(rng.uniform(0.5, 2.0)) / size  # of some joint's RMS effort

    def change(recording: Recording) -> Recording:
        columns = [recording.joint_names.index(name) for name in names]
        pushed = recording.effort.copy()
        pushed[:, columns] += push(recording)
        return replace(recording, effort=pushed)

    spoilt = replace(case, train=tuple(map(change, case.train)))
    drawn = f"{model.link_names[body]} from {begin:.2f} to {begin + length:.2f}"
    return Mistake(drawn, spoilt, ("contact", "load_changed"))


def joined_logs(case: Case, rng: Rng) -> Mistake:
    """Three logs of one motion, with pauses between them, stamped as one."""
    starts = np.sort(rng.uniform([0.25, 0.6], [0.4, 0.75]))
    pauses = rng.uniform(0.02, 0.1, 2)

    def join(recording: Recording) -> Recording:
        share = (recording.time - recording.time[0]) / recording.duration
        kept = ~((share[:, None] > starts) & (share[:, None] < starts + pauses)).any(axis=1)
        return numbered_on(recording, kept)

    seconds = ", ".join(f"{pause * case.train[0].duration:.1f} s" for pause in pauses)
    return Mistake(f"pauses of {seconds}", case.changed(join), ("joined_logs",))


def lost_rows(case: Case, rng: Rng) -> Mistake:
    share = float(rng.uniform(0.005, 0.03))
    spoilt = case.changed(lambda r: numbered_on(r, rng.random(len(r)) > share))
    return Mistake(f"{share:.1%}", spoilt, ("lost_rows",))


def lost_row(case: Case, rng: Rng) -> Mistake:
    """A single one."""
    row = int(rng.uniform(0.2, 0.8) * len(case.train[0]))
    return Mistake(f"{row}", case.changed(lambda r: numbered_on(r, np.arange(len(r)) != row)), ("lost_rows",))


def friction_sweeps(case: Case, rng: Rng) -> Mistake:
    """One recording for each joint, which goes one way at constant speed, with lost rows."""
    robot, seconds, ramp = case.simulated, 6.0, 0.3
    if robot.given.joints > 7:
        raise ImpossibleMistakeError  # for it takes too long
    low, high = joint_ranges(robot.given)
    time, share = np.arange(0.0, seconds, 1 / (4 * robot.rate_hz)), float(rng.uniform(0.005, 0.03))
    begin, end = (time > 0.5) & (time < 0.5 + ramp), (time > seconds - 0.5 - ramp) & (time < seconds - 0.5)
    complete, recordings = [], []
    for joint in range(robot.given.joints):
        q, v, a = (np.zeros((len(time), robot.given.joints)) for _ in range(3))
        a[:, joint] = 0.8 * (high - low)[joint] / (seconds - 1.0 - ramp) / ramp * (begin.astype(float) - end)
        v[:, joint] = np.cumsum(a[:, joint]) * (time[1] - time[0])
        q[:, joint] = np.cumsum(v[:, joint]) * (time[1] - time[0])
        q += 0.5 * (low + high) - 0.5 * q[-1]
        complete.append(robot.record(time, (q, v, a), rng, f"sweep {joint + 1}"))
        recordings.append(numbered_on(complete[-1], rng.random(len(time)) > share))
    spoilt, clean = (replace(case, train=tuple(some)) for some in (recordings, complete))
    return Mistake(f"{share:.1%}", spoilt, ("lost_rows",), clean=clean)


def snapping_gripper(case: Case, rng: Rng) -> Mistake:
    """No mistake: a light gripper at an end snaps open and shut, and encoders are coarse."""
    described = case.simulated.given
    link = described.link_names[int(rng.choice(described.end_bodies))]
    mass, size = float(rng.uniform(0.01, 0.05) * described.body_prior[:, 0].sum()), float(rng.uniform(0.03, 0.1))
    moment = mass * size**2
    finger = f"""<link name="finger"><inertial><origin xyz="{size} 0 0"/><mass value="{mass}"/><inertia
        ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="snaps" type="revolute"><parent link="{link}"/><child link="finger"/>
        <origin xyz="0 0 {size}"/><axis xyz="0 1 0"/>
        <limit lower="-0.1" upper="1.1" effort="20" velocity="20"/></joint></robot>"""
    given = load_model(described.urdf.replace("</robot>", finger), described.options)
    robot = replace(drawn_robot(given, rng), position_noise=0.0, with_velocity=False)
    step, snaps = 2 * np.pi / 2 ** int(rng.integers(12, 15)), given.joint_names.index("snaps")
    time, period, taken = np.arange(0.0, 60.0, 1 / 250), float(rng.uniform(1.5, 4.0)), float(rng.uniform(0.1, 0.2))

    def snapping(name: str) -> tuple[Recording, Recording]:
        """A recording at 50 Hz with coarse encoders, and a fine one of the same motion, to show the right torque."""
        q, v, a = drawn_motion(given, time, rng)
        since = time + rng.uniform(0, period)
        x = np.clip(since % period / taken, 0.0, 1.0)
        way = np.where(since % (2 * period) < period, 1.0, -1.0)
        q[:, snaps] = 0.5 + way * (x**3 * (10 - 15 * x + 6 * x**2) - 0.5)
        v[:, snaps] = way * 30 * x**2 * (1 - x) ** 2 / taken
        a[:, snaps] = way * 60 * x * (1 - x) * (1 - 2 * x) / taken**2
        fine = robot.record(time, (q, v, a), rng, name)
        coarse = fine.select(np.arange(len(time)) % 5 == 0)
        return replace(coarse, position=np.round(coarse.position / step) * step), fine

    recordings = zip(snapping("snaps 1"), snapping("snaps 2"), strict=True)
    coarse, fine = (replace(case, given=given, train=(one,), held_out=(other,)) for one, other in recordings)
    drawn = f"on {link} in {taken:.2f} s every {period:.1f} s, {step:.1g} rad"
    return Mistake(drawn, coarse, (), fine.held_out, fine)


def second_publisher(case: Case, rng: Rng) -> Mistake:
    """A joint_state_publisher beside the driver tells one position at a rate of its own."""
    rate = float(rng.choice([10.0, 20.0, 50.0, 100.0]))

    def mix(recording: Recording) -> Recording:
        at = np.arange(recording.time[0] + 0.0031, recording.time[-1], 1 / rate)
        order = np.argsort(np.concatenate([recording.time, at]), kind="stable")
        names = ("position", "effort", "velocity", "acceleration")
        channels = {key: getattr(recording, key) for key in names if getattr(recording, key) is not None}
        mixed = {key: np.concatenate([x, np.zeros((len(at), x.shape[1]))])[order] for key, x in channels.items()}
        return replace(recording, time=np.concatenate([recording.time, at])[order], **mixed)

    return Mistake(f"{rate:.0f} Hz", case.changed(mix), ("second_publisher",))


def limits_in_degrees(case: Case, rng: Rng) -> Mistake:
    limits, turning = case.given.limits, _turning(case)
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper) & turning
    if not (bounded & (limits.upper - limits.lower > 1.0)).any():
        raise ImpossibleMistakeError
    lower, upper = (np.where(bounded, np.round(np.degrees(x)), x) for x in (limits.lower, limits.upper))
    given = replace(case.given, limits=replace(limits, lower=lower, upper=upper))
    return Mistake("", replace(case, given=given), ("limits_unit",))


def drawn_mistake(kind: str, rng: Rng) -> tuple[Case, Mistake]:
    """A robot drawn at random that can suffer a kind of mistake: its recordings without and with it."""
    while True:
        case = drawn_case(str(rng.choice(ROBOTS)), rng)
        with contextlib.suppress(ImpossibleMistakeError):
            return case, KINDS[kind](case, rng)


KINDS: Mapping[str, Callable[[Case, Rng], Mistake]] = {
    "none": lambda case, rng: Mistake("", case),
    "sign of one drive": one_sign,
    "all signs": all_signs,
    "efforts are magnitudes": magnitudes,
    "sign bit": sign_bit,
    "axis turned": axis_turned,
    "two drives exchanged": drives_exchanged,
    "efforts shifted by a column": efforts_shifted,
    "two names exchanged": names_exchanged,
    "names in reverse": names_reversed,
    "positions in degrees": degrees,
    "positions in millimetres": millimetres,
    "unit changes": unit_changed,
    "motor currents": motor_currents,
    "N mm": newton_millimetres,
    "gravity compensated": gravity_compensated,
    "gravity turned": gravity_turned,
    "zero off by 90 or 180 degrees": zero_turned,
    "zero off by any angle": zero_anywhere,
    "short": short,
    "delay": delay,
    "stamps in ms or ns": time_unit,
    "validated with itself": validated_with_itself,
    "locked joint moves": locked_joint_moves,
    "counterbalance": counterbalance,
    "effort mostly zero": silent_effort,
    "coupled drives": coupled_drives,
    "gripper not in the URDF": unknown_gripper,
    "placeholder inertias": placeholder_inertias,
    "wrong material": wrong_material,
    "payload put down": payload_put_down,
    "leaned on": leaned_on,
    "joined logs": joined_logs,
    "lost rows": lost_rows,
    "lost row": lost_row,
    "friction sweeps with lost rows": friction_sweeps,
    "snapping gripper": snapping_gripper,
    "second publisher": second_publisher,
    "limits in degrees": limits_in_degrees,
    "position reversed": position_reversed,
    "absolute angle": absolute_angle,
    "clipped effort": clipped_effort,
    "drives off": drives_off,
    "wrong rate": wrong_rate,
}


def with_gripper(case: Case, link: str, kilograms: float) -> Case:
    """The same with a point mass before the flange that the URDF does not know: no mistake of the recordings."""
    load = LoadOptions(link=link, mass=kilograms, com=_LOAD_CENTRE, recordings=("*",))
    bodies = load_bodies(case.given, {"gripper": load}, "")

    def loaded(recording: Recording) -> Recording:
        samples = prepare(recording, case.given)
        added = [np.interp(recording.time, samples.time, c) for c in load_torque(case.given, bodies, samples).T]
        columns = [recording.joint_names.index(name) for name in case.given.joint_names]
        effort = recording.effort.copy()
        effort[:, columns] += np.stack(added, axis=1)
        return replace(recording, effort=effort)

    return replace(case.changed(loaded), bodies=case.bodies + bodies)


def counterbalanced(case: Case, joint: str, share: float) -> Case:
    """The same with a spring from the link before a joint to the one after it, as it balances shoulders.

    Its largest torque is a share of the largest weight on the joint.
    """
    largest = np.abs(case.torque(case.train[0])[:, case.given.joint_names.index(joint)]).max()
    column = case.train[0].joint_names.index(joint)
    middle = np.median(case.train[0].position[:, column])
    arm, anchor = 0.1, 0.4  # m from the axis
    every = np.linspace(-np.pi, np.pi, 100)
    size = share * largest / np.abs(_pull(every, arm, anchor)).max()

    def changed(recording: Recording) -> Recording:
        effort = recording.effort.copy()
        effort[:, column] += size * _pull(recording.position[:, column] - middle + 1.0, arm, anchor)
        return replace(recording, effort=effort)

    return case.changed(changed)


def _pull(angle: Array, arm: float, anchor: float) -> Array:
    """Torque of a spring of constant force between two points, by the angle between them at the axis."""
    length = np.sqrt(arm**2 + anchor**2 - 2 * arm * anchor * np.cos(angle))
    return np.asarray(arm * anchor * np.sin(angle) / length)


def _shoulder(case: Case) -> str:
    """The joint that carries most."""
    weights = np.abs(case.torque(case.train[0])).max(axis=0)
    return max(case.drives, key=lambda name: weights[case.given.joint_names.index(name)])


def in_unit(recording: Recording, factors: Sequence[float] | float) -> Recording:
    """Positions and velocities times factors of the joints."""
    velocity = None if recording.velocity is None else recording.velocity * factors
    return replace(recording, position=recording.position * factors, velocity=velocity, acceleration=None)


def in_millimetres(recording: Recording, joint: str) -> Recording:
    return in_unit(recording, [1e3 if name == joint else 1.0 for name in recording.joint_names])


def without_gravity(model: RobotModel, bodies: Array, recording: Recording) -> Recording:
    """Efforts of a driver that takes off the gravity of bodies ``(nb, 10)``."""
    columns = [recording.joint_names.index(name) for name in model.joint_names]
    q = recording.position[:, columns]
    effort = recording.effort.copy()
    effort[:, columns] -= rigid_torque(model, bodies, q, np.zeros_like(q), np.zeros_like(q))
    return replace(recording, effort=effort)


def _scaled(case: Case, factors: Mapping[str, float]) -> Case:
    def change(recording: Recording) -> Recording:
        return replace(recording, effort=recording.effort * [factors.get(name, 1.0) for name in recording.joint_names])

    return case.changed(change)


def reversed_axis(recording: Recording, joint: str) -> Recording:
    """Position and effort of a joint about the opposite of the URDF's axis."""
    signs = np.where(np.array(recording.joint_names) == joint, -1.0, 1.0)
    channels = {key: getattr(recording, key) for key in ("position", "effort", "velocity", "acceleration")}
    return replace(recording, **{key: signs * values for key, values in channels.items() if values is not None})


def _position_reversed(recording: Recording, joint: str) -> Recording:
    return replace(reversed_axis(recording, joint), effort=recording.effort)


def _exchanged_efforts(recording: Recording, pair: list[str]) -> Recording:
    one, other = map(recording.joint_names.index, pair)
    effort = recording.effort.copy()
    effort[:, [one, other]] = effort[:, [other, one]]
    return replace(recording, effort=effort)


def _exchanged_names(recording: Recording, pair: list[str]) -> Recording:
    other = dict(zip(pair, reversed(pair), strict=True))
    return replace(recording, joint_names=tuple(other.get(name, name) for name in recording.joint_names))


def _turned(recording: Recording, joint: str, degrees: float) -> Recording:
    position = recording.position.copy()
    position[:, recording.joint_names.index(joint)] += np.radians(degrees)
    return replace(recording, position=position)


def _delayed(recording: Recording, seconds: float) -> Recording:
    late = [np.interp(recording.time - seconds, recording.time, column) for column in recording.effort.T]
    return replace(recording, effort=np.stack(late, axis=1))


def _cut(recording: Recording, seconds: float) -> Recording:
    start = recording.time[0] + 0.5 * recording.duration
    kept = (recording.time >= start) & (recording.time < start + seconds)
    channels = {key: getattr(recording, key) for key in ("position", "effort", "velocity", "acceleration")}
    cut = {key: values[kept] for key, values in channels.items() if values is not None}
    return replace(recording, time=recording.time[kept], **cut)


def _silent(recording: Recording, joint: str, share: float) -> Recording:
    """The effort of a joint is there in one sample of several only."""
    effort = recording.effort.copy()
    every = int(round(1 / (1 - share)))
    effort[np.arange(len(effort)) % every != 0, recording.joint_names.index(joint)] = 0.0
    return replace(recording, effort=effort)


def _mounted(case: Case, gravity: tuple[float, ...]) -> Case:
    """The same with gravity stated wrongly."""
    x, y, z = gravity
    return replace(case, given=_loaded(case.given, gravity=(x, y, z)))


def _locked(case: Case, joint: str) -> Case:
    middle = float(np.median(case.train[0].position[:, case.train[0].joint_names.index(joint)]))
    options = case.given.options
    couplings = {name: drive for name, drive in options.couplings.items() if joint not in drive.joints}
    locked = {**options.locked_joints, joint: middle}
    try:
        given = _loaded(case.given, locked_joints=locked, couplings=couplings)
    except ModelError:  # a joint and a link of the URDF have the same name
        raise ImpossibleMistakeError from None
    return replace(case, given=given)


def _loaded(given: RobotModel, **options: object) -> RobotModel:
    return load_model(given.urdf, attrs.evolve(given.options, **options))  # type: ignore[arg-type]


def _payload(case: Case, rng: Rng) -> tuple[str, float]:
    """A link at an end of the robot, and a mass whose torque some joint shows."""
    _needs_gravity(case)
    before = case.torque(case.train[0])
    for _ in range(_TRIES):
        body = int(rng.choice(case.given.end_bodies))
        bodies = case.given.consistent_body_prior.copy()
        kilograms = float(rng.uniform(0.05, 0.3) * bodies[:, 0].sum())
        bodies[body] += kilograms * _POINT
        change = replace(case, given=case.given.with_prior_bodies(bodies)).torque(case.train[0]) - before
        if _changes(before, change, 0.3 * VISIBLE):
            return case.given.link_names[body], kilograms
    raise ImpossibleMistakeError


def numbered_on(recording: Recording, kept: Array) -> Recording:
    """Some of the rows, with stamps as if no other had been there."""
    some = recording.select(kept)
    return replace(some, time=recording.time[0] + np.arange(len(some)) * float(np.median(np.diff(recording.time))))


def _turning(case: Case) -> Array:
    """Joints ``(n,)`` that turn."""
    return np.array([not joint.prismatic for joint in case.given.tree if not joint.free])


def _needs_gravity(case: Case) -> None:
    """ImpossibleMistakeError where no joint's effort shows gravity change: it may as well be an offset."""
    weight, effort = case.torque(case.train[0]).std(axis=0), case.train[0].effort.std(axis=0)
    if not (weight > VISIBLE * effort).any():
        raise ImpossibleMistakeError


def _changes(before: Array, change: Array, share: float) -> bool:
    """Whether a torque ``(N, n)`` changes by more than a share for some joint."""
    size, changed = (np.sqrt(np.mean(x**2, axis=0)) for x in (before, change))
    return bool((changed > share * np.maximum(size, _LEAST_SHARE * size.max())).any())


def _visible(
    case: Case,
    rng: Rng,
    change: Callable[[list[str]], Callable[[Recording], Recording]],
    count: int,
    spoil: Callable[[list[str]], Case] | None = None,
) -> tuple[list[str], Case]:
    """Joints drawn until the torque that the URDF predicts changes: the first joint of an upright arm has no zero."""
    names = case.given.joint_names
    if len(names) < count:
        raise ImpossibleMistakeError
    for _ in range(_TRIES):
        some = [names[index] for index in rng.permutation(len(names))[:count]]
        if spoil is not None:
            moves = np.ptp(case.train[0].position[:, case.train[0].joint_names.index(some[0])])
            turned = case.torque(_turned(case.train[0], some[0], np.degrees(0.3 * moves)))
        else:
            turned = case.torque(change(some)(case.train[0]))
        known = [names.index(name) for name in case.drives]
        before, turned = case.torque(case.train[0])[:, known], turned[:, known]
        if _changes(before, turned - before, VISIBLE):
            return some, spoil(some) if spoil is not None else case.changed(change(some))
    raise ImpossibleMistakeError
