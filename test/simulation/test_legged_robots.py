"""Legged robots on force plates: the exoskeleton's numbers, balance on contacts, and equations of motion that hold."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from inertid_ros.config.simulation import LeggedRobotOptions, MovementOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import min_eigenvalue
from inertid_ros.simulation.example_robots import legged_robot
from inertid_ros.simulation.legged_robot import LeggedRobot, free_model, simulate_movements

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

MOVEMENTS = {
    "biped": MovementOptions(movements=4, seconds=0.6),
    "humanoid": MovementOptions(
        movements=3, seconds=1.0, com_m=(0.01, 0.005, 0.01), torso_rad=(0.1, 0.1, 0.1), joint_rad=0.3,
        one_tilt_at_a_time=False,
    ),
}

# [vanDerGaag2024]_ table D.1: m, m c (x, y, z), I (xx, xy, yy, xz, yz, zz) about the link's origin; the right leg.
BODY = (13.5, -0.773, 0.0715, 4.94, 2.29, 0.00621, 2.31, 0.312, -0.029, 0.0951)
LEG = {
    "hip": (4.35, 0.36, 0.0594, -0.328, 0.0808, -0.00483, 0.128, 0.0545, 0.00249, 0.0587),
    "thigh": (5.18, 1.04, 0.0425, -0.0258, 0.0155, -0.00747, 0.326, 0.0175, 0.00328, 0.323),
    "shank": (3.5, 0.39, -0.0299, -0.0423, 0.00868, 0.00161, 0.0834, 0.00258, 0.00137, 0.0822),
    "ankle": (0.198, 0.000492, -0.00409, -0.00768, 0.00174, 3.97e-05, 0.000446, 8.46e-06, -4.94e-05, 0.00132),
    "foot": (0.547, 0.0268, -0.000725, 0.0676, 0.0131, 5.17e-05, 0.0145, -0.00333, 9.73e-05, 0.00229),
}
MIRRORED = np.array([1, 1, 1, -1, 1, 1, 1, -1, -1, 1])  # of a link whose z axis is turned over


def _printed_parameters():
    legs = {"right": np.ones(10), "left": MIRRORED}
    rows = {f"{side}_{part}": sign * row for side, sign in legs.items() for part, row in LEG.items()}
    return {"body": np.array(BODY), **rows}


@pytest.fixture(scope="module", params=MOVEMENTS)
def run(request):
    robot = LeggedRobot(legged_robot(request.param), LeggedRobotOptions(movement=MOVEMENTS[request.param]))
    robot.move()
    exact = []
    while robot.moving:
        robot.step(10)
        exact.append((robot.true_state(), robot.coordinates()))
    return robot, exact


def test_exoskeleton_has_the_printed_parameters_and_they_are_physical():
    model, table = free_model(legged_robot("biped").urdf), _printed_parameters()
    assert len(table) == 11 and model.njoints == 12
    assert pin.computeTotalMass(model) == pytest.approx(41.05)
    for index in range(1, model.njoints):
        (link,) = (f.name for f in model.frames if f.parentJoint == index and f.name in table)
        np.testing.assert_allclose(model.inertias[index].toDynamicParameters(), table[link], atol=1e-14)
        assert min_eigenvalue(table[link]) > 0


def test_exoskeleton_is_symmetric_in_its_coordinates():
    model = free_model(legged_robot("biped").urdf)
    data, rng = model.createData(), np.random.default_rng(0)
    legs = {name: rng.uniform(-0.3, 0.3) for name in ("hip_abduction", "hip_flexion", "knee", "ankle_eversion")}
    q = pin.neutral(model)
    for side in ("left", "right"):
        for name, angle in legs.items():
            q[model.joints[model.getJointId(f"{side}_{name}")].idx_q] = angle
    pin.forwardKinematics(model, data, q)
    for part in ("hip_abduction", "knee", "ankle_eversion"):
        left, right = (data.oMi[model.getJointId(f"{side}_{part}")] for side in ("left", "right"))
        np.testing.assert_allclose(left.translation * [1, -1, 1], right.translation, atol=1e-12)
    legs = [
        sum(
            (data.oMi[i].act(model.inertias[i].lever) * model.inertias[i].mass for i in range(2, model.njoints)
             if model.names[i].startswith(side)), np.zeros(3),
        )
        for side in ("left", "right")
    ]
    np.testing.assert_allclose(legs[0] * [1, -1, 1], legs[1], atol=1e-12)


def test_equations_of_motion_hold_with_the_measured_wrenches(run):
    robot, exact = run
    model, data = robot.model, robot.model.createData()
    for sample, (q, v, a) in exact:
        left = pin.rnea(model, data, q, v, a)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        for sole in robot.robot.soles:
            plate = next(plate for plate in robot.robot.plates if plate.name == sole.plate)
            frame = model.getFrameId(sole.frame)
            wrench = (data.oMf[frame].inverse() * plate.placement).act(pin.Force(sample.wrenches[plate.name]))
            left -= pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL).T @ wrench.vector
        np.testing.assert_allclose(left[:6], 0, atol=2e-5)
        np.testing.assert_allclose(left[6:], sample.effort, atol=2e-5)


def test_soles_stay_and_the_robot_moves(run):
    robot, exact = run
    model, data = robot.model, robot.model.createData()
    for sole in robot.robot.soles:
        frame = model.getFrameId(sole.frame)
        places = []
        for _, (q, _, _) in exact:
            pin.framesForwardKinematics(model, data, q)
            places.append((data.oMf[frame] * sole.placement).translation)
        assert np.ptp(places, axis=0).max() < 1e-3
    assert np.ptp([sample.position for sample, _ in exact], axis=0).max() > 0.1
    weights = [sum(np.linalg.norm(w[:3]) for w in sample.wrenches.values()) for sample, _ in exact]
    assert np.mean(weights) == pytest.approx(9.81 * pin.computeTotalMass(model), rel=0.05)


def test_accelerometer_is_the_second_derivative_of_its_place_less_gravity():
    robot = LeggedRobot(legged_robot("biped"), LeggedRobotOptions(movement=MovementOptions(2, 0.5)))
    robot.move()
    mount = robot.model.frames[robot.model.getFrameId("imu")].placement
    lever, places, readings = mount.translation, [], []
    for _ in range(400):
        robot.step()
        state = robot.true_state()
        turn = Rotation.from_quat(state.base_pose[3:])
        places.append(state.base_pose[:3] + turn.apply(lever))
        readings.append(turn.apply(mount.rotation @ state.specific_force) + [0, 0, -9.81])
    step = 8
    places = np.array(places)
    second = (places[2 * step :] - 2 * places[step:-step] + places[: -2 * step]) / (step * 1e-3) ** 2
    smooth = np.array([np.mean(readings[i : i + 2 * step + 1], axis=0) for i in range(len(second))])
    assert np.sqrt(np.mean((second - smooth) ** 2)) < 0.05 * np.sqrt(np.mean(second**2)) + 5e-3


def test_recording_has_every_channel_and_noise_of_the_given_size():
    options = LeggedRobotOptions(movement=MovementOptions(1, 0.5))
    noisy = simulate_movements(LeggedRobot(legged_robot("biped"), options), state_hz=100)
    exact = simulate_movements(LeggedRobot(legged_robot("biped"), options), state_hz=100, noise=False)
    assert noisy.imu.shape == noisy.base_twist.shape == (len(noisy), 6)
    assert set(noisy.wrenches) == {"left_plate", "right_plate"}
    assert noisy.base_acceleration is None and exact.base_acceleration is not None
    np.testing.assert_allclose(np.linalg.norm(noisy.base_pose[:, 3:], axis=1), 1.0)
    deviation = np.std(noisy.wrenches["left_plate"][:, :3] - exact.wrenches["left_plate"][:, :3])
    assert deviation == pytest.approx(options.sensors.force, rel=0.3)
    assert (noisy.effort[:, [noisy.joint_names.index("left_ankle_eversion")]] == 0).all()


def test_the_compiled_world_is_the_same_robot(run):
    robot, _ = run
    compiled = robot.world.model
    assert compiled.body_mass.sum() == pytest.approx(pin.computeTotalMass(robot.model))
    assert compiled.nv == robot.model.nv


def test_a_robot_that_falls_says_so():
    wild = LeggedRobotOptions(movement=MovementOptions(4, 0.3, com_m=(0.8, 0.0, 0.0)))
    with pytest.raises(ModelError, match="fell"):
        simulate_movements(LeggedRobot(legged_robot("biped"), wild))
    with pytest.raises(ModelError, match="choose from biped"):
        legged_robot("centaur")
