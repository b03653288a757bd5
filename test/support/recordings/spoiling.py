"""Recordings spoilt as drivers, exporters and configurations spoil them: one function for each mistake."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import attrs
import numpy as np

from inertid_ros.config.robot import LoadOptions
from inertid_ros.core.arrays import Array
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.regressors.force_equations import load_torque
from inertid_ros.robot.body_changes import load_bodies
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel, load_model

VISIBLE = 0.5  # of a joint's RMS torque: what a wrong zero or name has to change of it to be a mistake at all


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
    """

    name: str
    given: RobotModel
    bodies: Array
    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...]
    drives: tuple[str, ...]

    def changed(self, change: Callable[[Recording], Recording]) -> "Case":
        """The same with all recordings changed alike."""
        train, held_out = (tuple(map(change, group)) for group in (self.train, self.held_out))
        return replace(self, train=train, held_out=held_out)

    def torque(self, recording: Recording) -> Array:
        """``(N, n)`` torque of gravity by the URDF, of a few samples."""
        rows = recording.position[:: max(1, len(recording) // 100)]
        q = rows[:, [recording.joint_names.index(name) for name in self.given.joint_names]]
        return rigid_torque(self.given, self.given.body_prior, q, np.zeros_like(q), np.zeros_like(q))


@dataclass(frozen=True)
class Mistake:
    """A mistake, what was drawn for it, the case that it leaves, and the causes that name it rightly."""

    name: str
    drawn: str
    case: Case
    causes: tuple[str, ...]


def mistakes(case: Case, rng: np.random.Generator) -> list[Mistake]:
    """One of each that a serial arm of turning joints can suffer, joints and magnitudes drawn at random."""
    names, out = case.given.joint_names, []
    n = len(names)

    def add(name: str, drawn: str, spoilt: Case, *causes: str) -> None:
        out.append(Mistake(name, drawn, spoilt, causes))

    one = str(rng.choice(case.drives))
    add("sign of one drive", one, _scaled(case, {one: -1.0}), "effort_sign")
    add("all signs", "", _scaled(case, dict.fromkeys(names, -1.0)), "effort_sign")
    add("magnitudes", "", case.changed(lambda r: replace(r, effort=np.abs(r.effort))), "effort_magnitude")
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: reversed_axis(r, some[0]), 1)
    add("axis turned", joint, spoilt, "joint_axis")
    pair = [str(name) for name in rng.permutation(case.drives)[:2]]
    add("two drives exchanged", " and ".join(pair), case.changed(lambda r: _exchanged_efforts(r, pair)),
        "effort_exchange")
    pair, spoilt = _visible(case, rng, lambda some: lambda r: _exchanged_names(r, some), 2)
    add("two names exchanged", " and ".join(pair), spoilt, "joint_exchange")
    add("degrees", "", case.changed(in_degrees), "position_unit")
    for unit, factor in (("mA", 1e3), ("A", 1.0)):
        # Gear ratios times torque constants of drives lie between some N m and some tens of N m per ampere.
        constants = np.exp(rng.uniform(np.log(3), np.log(30), n))
        drawn = f"{constants.min():.1f} to {constants.max():.1f} N m/A"
        add(unit, drawn, _scaled(case, dict(zip(names, factor / constants, strict=True))), "effort_current")
    add("N mm", "", _scaled(case, dict.fromkeys(names, 1e3)), "effort_unit")
    add("gravity compensated", "", case.changed(lambda r: without_gravity(case, r)), "gravity_compensated")
    add("gravity upside down", "", _mounted(case, (0.0, 0.0, 9.81)), "gravity_direction")
    tilt = rng.normal(size=2)
    sideways = tuple(float(x) for x in 9.81 * np.append(tilt / np.linalg.norm(tilt), 0.0))
    add("gravity sideways", f"[{sideways[0]:.1f}, {sideways[1]:.1f}, 0]", _mounted(case, sideways), "gravity_direction")
    for turn in (90, 180):
        angle = float(rng.choice([-1, 1])) * turn
        (joint,), spoilt = _visible(case, rng, lambda some, a=angle: lambda r: _turned(r, some[0], a), 1)
        add(f"zero off by {turn} degrees", f"{joint} {angle:+.0f}", spoilt, "position_offset", "beyond_limits")
    seconds = float(rng.uniform(0.2, 0.8))
    add("short", f"{seconds:.2f} s", case.changed(lambda r: _cut(r, seconds)), "short_recording")
    delay = float(rng.uniform(0.15, 0.4) * rng.choice([-1, 1]))
    add("delay", f"{1e3 * delay:.0f} ms", case.changed(lambda r: _delayed(r, delay)), "delay")
    for unit, factor in (("ms", 1e3), ("ns", 1e9)):
        add(f"stamps in {unit}", "", case.changed(lambda r, f=factor: replace(r, time=f * r.time)), "time_unit")
    add("validated with itself", "", replace(case, held_out=case.train), "held_out_not_new")
    (joint,), spoilt = _visible(case, rng, lambda some: lambda r: r, 1, lambda some: _locked(case, some[0]))
    add("locked joint moves", joint, spoilt, "locked_joint_moves")
    joint = _shoulder(case)
    share = float(rng.uniform(0.8, 1.6))
    add("counterbalance", f"{joint}, {share:.1f} of its weight", counterbalanced(case, joint, share), "counterbalance")
    silent = names[int(rng.integers(n))]
    add("effort mostly zero", silent, case.changed(lambda r: _silent(r, silent, 0.9)), "no_effort")
    return out


def with_gripper(case: Case, link: str, kilograms: float) -> Case:
    """The same with a point mass before the flange that the URDF does not know: no mistake of the recordings."""
    load = LoadOptions(link=link, mass=kilograms, com=(0.0, 0.1, 0.1), recordings=("*",))
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


def in_degrees(recording: Recording) -> Recording:
    """Positions and velocities in degrees."""
    velocity = None if recording.velocity is None else np.degrees(recording.velocity)
    return replace(recording, position=np.degrees(recording.position), velocity=velocity, acceleration=None)


def in_millimetres(recording: Recording, joint: str) -> Recording:
    """Positions and velocities of a sliding joint in millimetres."""
    column = recording.joint_names.index(joint)
    changed = {}
    for key in ("position", "velocity"):
        values = getattr(recording, key)
        if values is not None:
            changed[key] = values.copy()
            changed[key][:, column] *= 1e3
    return replace(recording, **changed)


def without_gravity(case: Case, recording: Recording) -> Recording:
    """Efforts of a driver that takes gravity out."""
    columns = [recording.joint_names.index(name) for name in case.given.joint_names]
    q = recording.position[:, columns]
    effort = recording.effort.copy()
    effort[:, columns] -= rigid_torque(case.given, case.bodies, q, np.zeros_like(q), np.zeros_like(q))
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
    return replace(case, given=_loaded(case.given, locked_joints=locked, couplings=couplings))


def _loaded(given: RobotModel, **options: object) -> RobotModel:
    return load_model(given.urdf, attrs.evolve(given.options, **options))  # type: ignore[arg-type]


def _visible(
    case: Case,
    rng: np.random.Generator,
    change: Callable[[list[str]], Callable[[Recording], Recording]],
    count: int,
    spoil: Callable[[list[str]], Case] | None = None,
) -> tuple[list[str], Case]:
    """Joints drawn until the torque that the URDF predicts changes: the first joint of an upright arm has no zero."""
    names = case.given.joint_names
    while True:
        some = [names[index] for index in rng.permutation(len(names))[:count]]
        if spoil is not None:
            moves = np.ptp(case.train[0].position[:, case.train[0].joint_names.index(some[0])])
            turned = case.torque(_turned(case.train[0], some[0], np.degrees(0.3 * moves)))
            spoilt = spoil(some)
        else:
            turned = case.torque(change(some)(case.train[0]))
            spoilt = case.changed(change(some))
        known = [names.index(name) for name in case.drives]
        before, turned = case.torque(case.train[0])[:, known], turned[:, known]
        size = np.sqrt(np.mean(before**2, axis=0))
        changed = np.sqrt(np.mean((turned - before) ** 2, axis=0))
        if (changed > VISIBLE * np.maximum(size, 0.05 * size.max())).any():
            return some, spoilt
