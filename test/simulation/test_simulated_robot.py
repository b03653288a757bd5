"""The simulated robot: tracking, modes, sensors, faults, repeatability."""

import attrs
import numpy as np
import pinocchio as pin
import pytest
from support.robots.quick_plans import PANDA_START, panda, panda_limits, quick_plan

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.config.simulation import (
    ControllerOptions,
    DriveOptions,
    FaultOptions,
    SensorOptions,
    SimulationOptions,
)
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.core.samples import StateSample
from inertid_ros.excitation.plan import slower
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.mujoco_model import build_mujoco, import_mujoco, set_bodies
from inertid_ros.simulation.sensors import FaultyChannel
from inertid_ros.simulation.simulated_robot import Drives, SimulatedRobot, simulate

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

EXACT = SensorOptions(0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def model(robots):
    return panda(robots)


def test_it_holds_its_pose(model):
    robot = SimulatedRobot(model, start=PANDA_START)
    robot.step(1000)
    assert robot.time == pytest.approx(1.0)
    assert robot.true_state().position == pytest.approx(PANDA_START, abs=2e-3)


def test_bodies_that_are_set_are_those_that_are_compiled(model):
    """Torque of any motion, of MuJoCo's own model of the URDF that has these bodies."""
    rng = np.random.default_rng(0)
    mujoco, bodies = import_mujoco(), model.consistent_body_prior * rng.uniform(0.5, 2.0, (7, 1))
    compiled, changed = (build_mujoco(load_model(write_urdf(model, bodies), model.options), 1e-3).model,
                         build_mujoco(model, 1e-3))  # fmt: skip
    set_bodies(changed, bodies)
    motion, torques = rng.normal(size=(3, 7)), []
    for each in (compiled, changed.model):
        data = mujoco.MjData(each)
        data.qpos[:], data.qvel[:], data.qacc[:] = motion
        mujoco.mj_inverse(each, data)
        torques.append(data.qfrc_inverse.copy())
    np.testing.assert_allclose(torques[0], torques[1], atol=1e-8)


def test_it_becomes_heavier_in_motion(model):
    """Drives then hold what gravity asks of the new bodies, from the pose and speed of before."""
    exact = SimulationOptions(sensors=EXACT)
    still = Drives(*np.zeros((5, 7)))
    robot = SimulatedRobot(model, exact, drives=still, start=PANDA_START)
    robot.step(500)
    before = robot.true_state()
    bodies = model.body_prior.copy()
    bodies[-1] *= 2.0
    heavier = load_model(write_urdf(model, bodies), model.options)
    robot.become(heavier)
    assert (robot.true_state().position == before.position).all()
    robot.step(3000)
    state, pinocchio = robot.true_state(), heavier.pinocchio
    gravity = pin.computeGeneralizedGravity(pinocchio, pinocchio.createData(), state.position)
    assert state.effort == pytest.approx(gravity, abs=0.05)
    with pytest.raises(ModelError, match="the new robot has other joints"):
        locked = {**model.options.locked_joints, "panda_joint7": 0.0}
        robot.become(load_model(model.urdf, attrs.evolve(model.options, locked_joints=locked)))


def test_it_tracks_well_but_not_perfectly(model):
    limits = panda_limits(model)
    plan = quick_plan(limits, PANDA_START, 2, ExcitationOptions(duration_s=5.0, base_frequency_hz=0.2))
    robot = SimulatedRobot(model, start=PANDA_START)
    recording = simulate(robot, slower(plan, 0.8))
    wanted = slower(plan, 0.8).sample(recording.time)[0]
    error = np.abs(recording.position - wanted).max()
    assert 1e-4 < error < 0.03


def tracking_error(model, **controller):
    """Tracking errors and speeds ``(N, n)`` in a fast motion."""
    options = SimulationOptions(sensors=EXACT, controller=ControllerOptions(**controller))
    plan = quick_plan(panda_limits(model), PANDA_START, 2, ExcitationOptions(duration_s=3.0, base_frequency_hz=1 / 3))
    robot, rows = SimulatedRobot(model, options, start=PANDA_START), []

    def look(robot):
        wanted, speed, _ = robot.desired()
        rows.append((wanted - robot.true_state().position, speed))

    simulate(robot, plan, each_step=look)
    return (np.array(column) for column in zip(*rows, strict=True))


def lags(error, speed):
    """Lag of all joints together, and of each joint [s]; joints disturb one another, but not all in one direction."""
    return (error * speed).sum() / (speed * speed).sum(), (error * speed).sum(axis=0) / (speed * speed).sum(axis=0)


@pytest.mark.parametrize(
    ("bandwidth", "feed_forward", "rate_hz"),
    [(50.0, 0.0, 500.0), (75.0, 0.9, 500.0), (200.0, 0.0, 125.0), (200.0, 0.9, 1000.0)],
)
def test_drives_lag_as_long_as_their_options_say(model, bandwidth, feed_forward, rate_hz):
    error, speed = tracking_error(
        model, bandwidth_rad_s=bandwidth, feed_forward=feed_forward, rate_hz=rate_hz
    )
    together, each = lags(error, speed)
    expected = 2 * (1 - feed_forward) / bandwidth
    assert together == pytest.approx(expected, rel=0.25, abs=1e-4)
    assert each == pytest.approx(np.full(7, expected), rel=0.5, abs=1e-4)


@pytest.mark.parametrize("rate_hz", [250.0, 1000.0])
def test_a_pid_by_efforts_errs_with_acceleration_alone(model, rate_hz):
    error, speed = tracking_error(model, kind="pid", bandwidth_rad_s=40.0, rate_hz=rate_hz)
    together, each = lags(error, speed)
    assert abs(together) < 1e-3 and np.abs(each).max() < 4e-3  # a cascade of this bandwidth lags by 50 ms
    assert 1e-3 < np.abs(error).max() < 0.02


def test_drives_of_any_bandwidth_hold_a_folded_arm_still(robots):
    """A folded arm has a tenth of the inertia that its drives are tuned to."""
    for urdf, start in (("panda_description/urdf/panda.urdf", [0, 0.5, 0, -3.0, 0, 3.5, 0]),
                        ("ur_description/urdf/ur5_robot.urdf", [0, -0.2, 2.9, 0, 0.1, 0])):  # fmt: skip
        model = load_model(robots / urdf)
        for kind, bandwidth in (("cascade", 50.0), ("cascade", 200.0), ("pid", 75.0)):
            options = SimulationOptions(controller=ControllerOptions(kind=kind, bandwidth_rad_s=bandwidth))
            robot = SimulatedRobot(model, options, start=np.array(start, dtype=float))
            robot.stream(np.array(start) + 0.02)
            robot.step(1000)
            assert np.abs(robot.true_state().velocity).max() < 0.05, (urdf, kind, bandwidth)
            assert robot.true_state().position == pytest.approx(np.array(start) + 0.02, abs=0.01)


def test_efforts_are_those_that_move_the_robot(model):
    """Rotor inertia, friction and offset included, at any instant of a motion."""
    options = SimulationOptions(sensors=EXACT, controller=ControllerOptions(bandwidth_rad_s=200.0))
    plan = quick_plan(panda_limits(model), PANDA_START, 2, ExcitationOptions(duration_s=2.0, base_frequency_hz=0.5))
    robot, rows = SimulatedRobot(model, options, start=PANDA_START), []
    simulate(robot, plan, each_step=lambda robot: rows.append(robot.true_state()))
    velocity = np.array([state.velocity for state in rows])
    acceleration, data = (velocity[2:] - velocity[:-2]) / (2 * options.timestep_s), model.pinocchio.createData()
    drives, errors = robot.drives, []
    for state, a in zip(rows[1:-1], acceleration, strict=True):
        torque = pin.rnea(model.pinocchio, data, state.position, state.velocity, a) + drives.rotor_inertia * a
        torque += drives.viscous * state.velocity + drives.coulomb * np.sign(state.velocity) + drives.offset
        errors.append((state.effort - torque)[np.abs(state.velocity) > 0.05])
    assert np.sqrt(np.mean(np.concatenate(errors) ** 2)) < 0.05  # of up to 40 N m


def test_a_recording_covers_the_plan(model):
    plan = quick_plan(panda_limits(model), PANDA_START, 2, ExcitationOptions(duration_s=2.0, base_frequency_hz=0.5))
    robot = SimulatedRobot(model, start=PANDA_START + 0.1)
    recording = simulate(robot, plan, state_hz=250.0, name="second")
    assert recording.name == "second"
    assert recording.joint_names == model.joint_names
    assert 0 <= recording.time[0] < 0.005
    assert recording.time[-1] == pytest.approx(plan.duration + 0.5, abs=0.02)
    assert np.diff(recording.time) == pytest.approx(0.004, abs=1e-9)
    assert recording.position[0] == pytest.approx(PANDA_START, abs=0.01)
    assert np.abs(recording.velocity[-1]).max() < 0.05


def test_the_same_seed_gives_the_same_robot_and_noise(model):
    plan = quick_plan(panda_limits(model), PANDA_START, 2, ExcitationOptions(duration_s=1.0, base_frequency_hz=1.0))
    one, two, other = (
        simulate(SimulatedRobot(model, SimulationOptions(seed=seed), start=PANDA_START), plan) for seed in (1, 1, 2)
    )
    assert (one.effort == two.effort).all()
    assert (one.position == two.position).all()
    assert (one.effort != other.effort).any()


def test_truth_is_in_the_layout_of_the_model(model):
    drives = Drives(*(np.full(7, value) for value in (0.1, 0.2, 0.3, -0.4)))
    robot = SimulatedRobot(model, drives=drives)
    layout = model.layout
    assert layout.bodies(robot.truth) == pytest.approx(model.body_prior)
    for term, value in (("rotor_inertia", 0.1), ("viscous", 0.2), ("coulomb", 0.3), ("offset", -0.4)):
        assert (robot.truth[layout.drive(term)] == value).all()
    assert not robot.truth[layout.drive("stiffness")].any()


def test_sensors_have_the_noise_and_resolution_that_they_are_given(model):
    sensors = SensorOptions(position_noise=1e-3, velocity_noise=0.02, effort_noise=0.01)
    robot = SimulatedRobot(model, SimulationOptions(sensors=sensors), start=PANDA_START)
    robot.step(500)
    true = robot.true_state()
    states = [robot.state() for _ in range(2000)]
    for channel, deviation in (("position", 1e-3), ("velocity", 0.02), ("effort", 0.01 * model.limits.effort)):
        errors = np.array([getattr(state, channel) for state in states]) - getattr(true, channel)
        assert errors.std(axis=0) == pytest.approx(deviation * np.ones(7), rel=0.1)
        assert (np.abs(errors.mean(axis=0)) < 0.1 * deviation).all()
    coarse = SensorOptions(0.0, 1e-3, 0.0, 0.0)
    robot = SimulatedRobot(model, SimulationOptions(sensors=coarse), start=PANDA_START)
    counts = robot.state().position / 1e-3
    assert counts == pytest.approx(np.round(counts), abs=1e-9)


def test_encoders_do_not_see_the_play_of_a_gear(model):
    options = SimulationOptions(sensors=SensorOptions(0.0, 0.0, 0.0, 0.0, play=1e-3), drives=DriveOptions(0.0, 0.0))
    robot = SimulatedRobot(model, options, start=PANDA_START)
    assert robot.state().position == pytest.approx(PANDA_START)
    reported = []
    for shift in (0.01, 0.0):
        robot.stream(PANDA_START + shift)
        robot.step(1000)
        reported.append(robot.state().position - robot.true_state().position)
    assert reported[0] == pytest.approx(np.full(7, -1e-3), abs=1e-6)
    assert reported[1] == pytest.approx(np.full(7, 1e-3), abs=1e-6)


def test_efforts_are_passed_on_until_they_stop_coming(model):
    quiet = SimulationOptions(sensors=EXACT, drives=DriveOptions(offset=0.0))
    robot = SimulatedRobot(model, quiet, start=PANDA_START)
    data = model.pinocchio.createData()
    for _ in range(300):
        gravity = pin.computeGeneralizedGravity(model.pinocchio, data, robot.true_state().position)
        robot.command_effort(gravity)
        robot.step()
    assert robot.passes_efforts
    assert robot.true_state().position == pytest.approx(PANDA_START, abs=1e-3)
    assert robot.true_state().effort == pytest.approx(gravity, abs=1e-6)
    robot.step(150)
    assert not robot.passes_efforts
    robot.step(500)
    assert robot.true_state().position == pytest.approx(PANDA_START, abs=0.01)
    robot.command_effort(np.full(7, 1e6))
    robot.step()
    robot.step()
    assert (robot.true_state().effort <= model.limits.effort + 1e-9).all()


def test_a_trajectory_takes_over_from_efforts_without_a_jump(model):
    robot = SimulatedRobot(model, start=PANDA_START)
    for _ in range(100):
        robot.command_effort(np.zeros(7))
        robot.step()
    here = robot.true_state().position
    assert np.abs(here - PANDA_START).max() > 0.01
    zero = np.zeros((1, 7))
    robot.follow(PiecewiseQuintic(np.array([2.0]), PANDA_START[None], zero, zero))
    assert robot.desired()[0] == pytest.approx(here)
    robot.step(3000)
    assert robot.true_state().position == pytest.approx(PANDA_START, abs=5e-3)
    robot.stream(PANDA_START + 0.01)
    robot.step(500)
    assert robot.true_state().position == pytest.approx(PANDA_START + 0.01, abs=5e-3)


def test_bad_commands_are_refused(model):
    robot = SimulatedRobot(model, start=PANDA_START)
    for wrong in (np.zeros(6), np.full(7, np.nan)):
        with pytest.raises(ExcitationError):
            robot.command_effort(wrong)
        with pytest.raises(ExcitationError):
            robot.stream(wrong)
        with pytest.raises(ModelError):
            robot.reset(wrong)
    with pytest.raises(ModelError, match="at least zero"):
        Drives(*(np.full(7, value) for value in (0.1, -0.2, 0.3, 0.4)))


def test_reset_starts_over(model):
    robot = SimulatedRobot(model, start=PANDA_START)
    robot.command_effort(np.full(7, 5.0))
    robot.step(50)
    robot.reset(PANDA_START + 0.1)
    assert robot.time == 0
    assert not robot.passes_efforts
    robot.step(100)
    assert robot.true_state().position == pytest.approx(PANDA_START + 0.1, abs=5e-3)


@pytest.mark.parametrize(("coulomb", "stribeck"), [(5.0, 0.0), (1.0, 4.0)])
def test_dry_friction_holds_against_less_than_itself(robots, coulomb, stribeck):
    model = panda(robots)
    drives = Drives(*(np.full(7, value) for value in (0.1, 0.1, coulomb, 0.0)), stribeck=stribeck)
    assert drives.dry_friction(np.zeros(7)) == pytest.approx(np.full(7, 5.0))
    assert drives.dry_friction(np.full(7, 9.0)) == pytest.approx(np.full(7, coulomb))
    robot = SimulatedRobot(model, SimulationOptions(sensors=EXACT), drives=drives, start=PANDA_START)
    data = model.pinocchio.createData()
    for push, moves in ((4.0, False), (7.0, True)):
        robot.reset(PANDA_START)
        for _ in range(200):
            gravity = pin.computeGeneralizedGravity(model.pinocchio, data, robot.true_state().position)
            robot.command_effort(gravity + push * (np.arange(7) == 6))
            robot.step()
        assert (abs(robot.true_state().position[6] - PANDA_START[6]) > 0.05) == moves


def states(count=40, period=0.005):
    return [StateSample(period * k, np.array([0.1 * k]), np.array([1.0]), np.array([2.0])) for k in range(count)]


def passed(**faults):
    channel = FaultyChannel(np.random.default_rng(0), FaultOptions(**{"gap_rate_hz": 0.0, **faults}))
    return [(s.time, arrived) for s in states() for arrived in channel.pass_on(s)]


def test_faults_of_the_state_channel():
    assert [a.position[0] for _, a in passed()] == pytest.approx([0.1 * k for k in range(40)])
    assert passed(silent=True) == []
    assert all(np.isnan(a.position).all() and np.isfinite(a.time) for _, a in passed(not_finite=True))
    late = passed(delay_s=0.05)
    assert all(now - a.time == pytest.approx(0.05, abs=1e-6) for now, a in late)
    assert len(late) == 30
    assert 5 < len(passed(drop=0.7)) < 25
    assert all(a.time - now == pytest.approx(3.0) for now, a in passed(stamp_offset_s=3.0))


def test_frozen_states_keep_their_values_and_advance_their_stamps():
    channel = FaultyChannel(np.random.default_rng(0))
    arrived = []
    for index, state in enumerate(states()):
        if index == 10:
            channel.faults = attrs.evolve(channel.faults, frozen=True)
        arrived += channel.pass_on(state)
    assert [s.position[0] for s in arrived[10:]] == [arrived[9].position[0]] * 30
    assert (np.diff([s.time for s in arrived]) > 0).all()


def test_a_publisher_that_is_held_up_skips_states_and_is_late_with_one():
    faults = FaultOptions(gap_rate_hz=1.0, gap_s=(0.024, 0.068, 0.39))
    channel, times, stamps = FaultyChannel(np.random.default_rng(0), faults), [], []
    for step in range(100_000):
        now = 0.002 * step
        for arrived in channel.pass_on(StateSample(now, *np.zeros((3, 1)))):
            times.append(now)
            stamps.append(arrived.time)
    late, gaps = np.subtract(times, stamps), np.diff(stamps)
    held_up = late[late > 1e-6]
    assert len(held_up) == pytest.approx(200 / 1.1, rel=0.25)
    assert held_up.min() > 0.023 and held_up.max() < 0.392 and 0.05 < np.median(held_up) < 0.11
    assert (gaps > 0).all() and np.sort(gaps)[-len(held_up)] > 0.02
