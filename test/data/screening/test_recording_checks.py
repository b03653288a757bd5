"""Stamps, positions, locked joints and motion of a recording against what a robot can do."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import Motion, random_motion, record
from support.recordings.synthetic_calibration import held_recording, synthetic_case
from support.robots.random_robots import random_urdf

from inertid_ros.config.robot import CouplingOptions, RobotOptions, TermOptions
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_checks import (
    check_locked,
    check_positions,
    check_units_midway,
    refuse,
)
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.data.screening.motion_checks import check_motion
from inertid_ros.data.screening.stamp_checks import check_stamps
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import load_model


@pytest.fixture(scope="module")
def case():
    return synthetic_case(0, 3, 2)


@pytest.mark.parametrize("factor, unit", [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")])
@pytest.mark.parametrize("velocity", [True, False])
def test_stamps_that_are_not_in_seconds(case, factor, unit, velocity):
    recording = case.recordings[0]
    spoilt = replace(recording, time=factor * recording.time, velocity=recording.velocity if velocity else None)
    (finding,) = check_stamps(spoilt)
    assert finding.cause == "time_unit" and unit in finding.remedy
    with pytest.raises(RecordingError, match=f"divide the stamps by .* {unit}"):
        refuse([finding])


def test_slow_motion_of_seldom_samples_is_in_seconds(case):
    time = np.arange(0.0, 600.0, 0.5)
    slow = record(case.truth, random_motion(np.random.default_rng(0), 3, base_hz=0.005), time)
    assert not check_stamps(slow) and not check_stamps(replace(slow, velocity=None))


def _limited(model, lower, upper):
    return replace(model, limits=replace(model.limits, lower=np.full(3, lower), upper=np.full(3, upper)))


def test_limits_that_are_passed_a_little_are_only_told(case):
    recording = case.recordings[0]
    low, high = recording.position.min(), recording.position.max()
    assert not check_positions(recording, _limited(case.given, low, high))
    few = check_positions(recording, _limited(case.given, 0.9 * low, 0.9 * high))
    assert all(finding.severity is Severity.NOTICE for finding in few)
    wide = check_positions(replace(recording, position=recording.position + 2.0), _limited(case.given, low, high))
    assert {finding.cause for finding in wide} <= {"position_offset", "beyond_limits"}
    assert max(finding.severity for finding in wide) is Severity.CARE


def test_a_joint_without_limits_is_left_alone(case):
    assert not check_positions(case.recordings[0], _limited(case.given, -np.inf, np.inf))


def test_a_locked_joint_counts_by_the_torque_that_it_changes(case):
    given = load_model(case.given.urdf, RobotOptions(locked_joints={"joint1": 0.3}))
    assert not check_locked(held_recording(case.truth, {"joint1": 0.3}), given)
    (finding,) = check_locked(case.recordings[0], given)
    assert finding.severity is Severity.REFUSE and finding.subjects == ("joint1",)
    still = case.recordings[0].position.copy()
    still[:, 1] = 0.3 + 2e-3 * np.sin(case.recordings[0].time)
    (finding,) = check_locked(replace(case.recordings[0], position=still), given)
    assert finding.severity is Severity.NOTICE
    still[:, 1] = 0.712
    (finding,) = check_locked(replace(case.recordings[0], position=still), given)
    assert finding.remedy == "set robot.locked_joints: {joint1: 0.712}"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("channel, factor", [("position", 180 / np.pi), ("effort", 1000.0)])
def test_a_unit_that_changes_is_named_with_its_instant(seed, channel, factor):
    rng = np.random.default_rng(seed)
    case = synthetic_case(seed, 2 + seed % 4, 1)
    recording, row = case.recordings[0], int(rng.uniform(0.2, 0.8) * len(case.recordings[0]))
    assert not check_units_midway(recording, case.given)
    late = np.where(np.arange(len(recording)) < row, 1.0, factor)[:, None]
    spoilt = replace(recording, velocity=None, acceleration=None, **{channel: late * getattr(recording, channel)})
    (finding,) = check_units_midway(spoilt, case.given)
    assert finding.cause == f"{channel}_unit" and finding.severity is Severity.REFUSE
    instant = float(finding.evidence.split()[7])
    assert instant == pytest.approx(recording.time[row] - recording.time[0], abs=2 * recording.period)


@pytest.mark.parametrize("mass, severity", [(1.0, Severity.REFUSE), (1e-5, Severity.NOTICE)])
@pytest.mark.parametrize("by_option", [False, True])
def test_a_joint_that_is_locked_since_others_mimic_it_counts_alike(mass, severity, by_option):
    """A linkage that moves is refused, a light gripper that opens is not."""
    text = random_urdf(np.random.default_rng(2), 4, branched=False)
    mimic = '<mimic joint="joint2" multiplier="-1"/></joint>'
    text = re.sub('(<joint name="joint3".*?)</joint>', lambda found: found[1] + mimic, text, flags=re.DOTALL)
    for link in ("link2", "link3"):
        own = re.search(f'<link name="{link}">.*?</link>', text, flags=re.DOTALL)[0]
        light = re.sub('(value|i[xyz]{2})="([^"]*)"', lambda x: f'{x[1]}="{float(x[2]) * mass!r}"', own)
        text = text.replace(own, light)
    model = load_model(text, RobotOptions(locked_joints={"joint2": 0.0} if by_option else {}))
    assert model.joint_names == ("joint0", "joint1")
    time = np.arange(0.0, 10.0, 0.01)
    position = np.sin(np.outer(time, [1.0, 1.4, 0.8]) + [0.0, 1.0, 2.0])
    recording = Recording(("joint0", "joint1", "joint2"), time, position, np.ones_like(position))
    (finding,) = check_locked(recording, model)
    assert finding.severity is severity and finding.subjects == ("joint2",)
    assert "set robot.carried_joints: [joint2], so that it is identified together with its mimic joints joint3" in (
        finding.remedy)


def _samples(case, motion, seconds=15.0):
    return prepare(record(case.truth, motion, np.arange(0.0, seconds, 0.01)), case.given)


def test_joints_in_lockstep_are_told(case):
    one = np.array([[0.3, 0.3, 0.3]])
    together = Motion(one, np.array([[1.0, 0.5, -0.7]]), np.zeros((1, 3)))
    (finding,) = check_motion([_samples(case, together)], case.given)
    assert finding.cause == "lockstep" and finding.severity is Severity.CARE and len(finding.subjects) == 3
    assert "on one line" in finding.evidence
    two = Motion(np.array([[0.3, 0.3, 0.2]]), np.array([[1.0, 0.5, -0.7]]), np.array([[0.0, 0.0, 0.9]]))
    (finding,) = check_motion([_samples(case, two)], case.given)
    assert finding.severity is Severity.NOTICE and len(finding.subjects) == 2
    apart = Motion(one, np.array([[1.0, 0.5, -0.7]]), np.array([[0.0, 1.6, 0.8]]))
    assert check_motion([_samples(case, apart)], case.given) == ()


def test_a_joint_that_hardly_moves_is_told(case):
    motion = random_motion(np.random.default_rng(1), 3)
    motion.amplitude[:, 1] *= 0.01
    (finding,) = check_motion([_samples(case, motion)], case.given)
    assert finding.cause == "little_motion" and finding.subjects == ("joint1",)


def test_a_moment_of_motion_is_refused(case):
    samples = prepare(case.recordings[0], case.given)
    middle = slice(len(samples) // 2, len(samples) // 2 + int(0.5 / np.median(np.diff(samples.time))))
    with pytest.raises(RecordingError, match="short"):
        refuse(check_motion([samples.select(middle)], case.given))


def test_a_drive_that_turns_with_two_joints_is_named():
    case = synthetic_case(1, 4, 1)
    recording = case.recordings[0]
    speed = recording.velocity[:, 2] + recording.velocity[:, 3]
    torque = 8.0 * np.tanh(speed / 0.02) + 4.0 * speed
    effort = recording.effort + np.outer(torque, [0, 0, 1, 1])
    spoilt = prepare(replace(recording, effort=effort), case.given)
    found = check_efforts(spoilt, case.given)
    assert [finding.cause for finding in found] == ["coupling"], found
    assert found[0].subjects == ("joint2", "joint3") and "ratios: [1, 1]" in found[0].remedy
    declared = load_model(
        case.given.urdf, RobotOptions(couplings={"wrist": CouplingOptions(("joint2", "joint3"), (1.0, 1.0))}))
    assert not check_efforts(prepare(replace(recording, effort=effort), declared), declared)


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_masses_that_are_wrong_by_a_factor_do_not_refuse_a_recording(factor):
    case = synthetic_case(2, 4, 1)
    wrong = replace(case.given, body_prior=factor * case.given.body_prior)
    found = check_efforts(prepare(case.recordings[0], wrong), wrong)
    assert all(finding.severity <= Severity.CARE for finding in found), found


def test_a_counterbalance_that_is_declared_explains_what_gravity_does_not():
    case = synthetic_case(1, 4, 1)
    recording = case.recordings[0]
    size = 2.0 * np.std(recording.effort[:, 1])
    effort = recording.effort + size * np.outer(np.sin(recording.position[:, 1]), [0, 1, 0, 0])
    spring = TermOptions("joint1", expressions=("sin(q)",))
    declared = load_model(case.given.urdf, RobotOptions(terms={"counterbalance": spring}))
    assert not check_efforts(prepare(replace(recording, effort=effort), declared), declared)


@pytest.mark.parametrize("seed", range(3))
def test_a_spring_on_a_slide_is_named_with_its_shape(seed):
    """It carries most of the weight of a lift, and more of it the lower the lift is."""
    rng, model = np.random.default_rng(seed), load_model(lift_with_an_arm())
    time = np.arange(0.0, 20.0, 0.01)
    q, v, a = random_motion(rng, 3).sample(time)
    effort = rigid_torque(model, model.body_prior, q, v, a) + 3.0 * np.sign(v)
    effort[:, 0] += rng.uniform(100.0, 200.0) * q[:, 0] ** 2 - rng.uniform(50.0, 100.0) * q[:, 0]
    recording = Recording(model.joint_names, time, q, effort, name="lift")
    found = check_efforts(prepare(recording, model), model)
    assert [finding.cause for finding in found] == ["counterbalance"], found
    assert found[0].subjects == ("rise",) and "shape: polynomial" in found[0].remedy


def lift_with_an_arm() -> str:
    """URDF of a lift of 8 kg that carries an arm of two links."""
    links = [
        f'<link name="{name}"><inertial><origin xyz="0.2 0 0.05"/><mass value="{mass}"/><inertia ixx="0.1" iyy="0.1"'
        ' izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, mass in (("base", 5.0), ("lift", 8.0), ("upper", 3.0), ("lower", 2.0))
    ]
    joints = [
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0.3 0 0"/>'
        f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3" effort="500"/></joint>'
        for name, kind, parent, child, axis in (("rise", "prismatic", "base", "lift", "0 0 1"),
            ("shoulder", "revolute", "lift", "upper", "0 1 0"), ("elbow", "revolute", "upper", "lower", "0 1 0"))
    ]
    return f'<robot name="lift">{"".join(links + joints)}</robot>'


def test_a_lift_whose_effort_is_no_force_is_named():
    model = load_model(lift_with_an_arm())
    motion = random_motion(np.random.default_rng(3), 3)
    recording = record(model, motion, np.arange(0.0, 20.0, 0.01), 0.0, np.random.default_rng(0))
    assert not check_efforts(prepare(recording, model), model)
    spoilt = replace(recording, effort=recording.effort * [0.01, 1.0, 1.0])
    (finding,) = check_efforts(prepare(spoilt, model), model)
    assert finding.cause == "lacks_weight" and finding.subjects == ("rise",) and finding.severity is Severity.REJECT
    resting = prepare(spoilt, model)
    still = np.broadcast_to(resting.q[:1, :1], (len(resting.q), 1))  # stiction or a brake may carry the lift
    resting = replace(resting, q=np.hstack([still, resting.q[:, 1:]]))
    assert "lacks_weight" not in [finding.cause for finding in check_efforts(resting, model)]
    everything = replace(recording, effort=0.001 * recording.effort)
    (finding, *_) = check_efforts(prepare(everything, model), model)
    assert finding.cause == "effort_unit"
