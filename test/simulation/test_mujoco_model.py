"""MuJoCo, reading the URDF on its own, agrees with Pinocchio to the last digits: an independent witness."""

import sys

import numpy as np
import pinocchio as pin
import pytest
from support.robots.example_robots import load_with_locks

from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.mujoco_model import build_mujoco, import_mujoco
from inertid_ros.simulation.simulated_robot import SimulatedRobot

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

ROBOTS = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur10_robot.urdf",
    "kinova_description/robots/kinova.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
    "tiago_pro_description/robots/tiago_pro.urdf",
)


def inverse_dynamics(compiled, q, v, a):
    """Joint torques by MuJoCo, of the bodies alone."""
    model, data = compiled.model, mujoco.MjData(compiled.model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:], model.dof_armature[:] = 0, 0
    out = []
    for row in zip(q, v, a, strict=True):
        data.qpos[compiled.position], data.qvel[compiled.dof], data.qacc[compiled.dof] = row
        mujoco.mj_inverse(model, data)
        out.append(data.qfrc_inverse[compiled.dof].copy())
    return np.array(out)


def states(robot, count=20, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, (count, robot.joints)), *rng.normal(size=(2, count, robot.joints))


@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics_agree(robots, name):
    robot = load_with_locks(robots / name, 0.013)
    compiled = build_mujoco(robot, 1e-3)
    q, v, a = states(robot)
    data = robot.pinocchio.createData()
    wanted = np.array([pin.rnea(robot.pinocchio, data, *row) for row in zip(q, v, a, strict=True)])
    assert inverse_dynamics(compiled, q, v, a) == pytest.approx(wanted, abs=1e-9 * max(np.abs(wanted).max(), 1))


def test_locked_joints_stay_where_they_are_locked(robots):
    path = robots / "panda_description" / "urdf" / "panda.urdf"

    locks = {"panda_joint3": 0.7, "panda_finger_joint1": 0.03, "panda_finger_joint2": 0.01}
    robot = load_model(path, RobotOptions(locked_joints=locks))
    assert robot.joints == 6
    q, v, a = states(robot)
    data = robot.pinocchio.createData()
    wanted = np.array([pin.rnea(robot.pinocchio, data, *row) for row in zip(q, v, a, strict=True)])
    assert inverse_dynamics(build_mujoco(robot, 1e-3), q, v, a) == pytest.approx(wanted, abs=1e-9)


def test_gravity_is_that_of_the_options(robots):

    options = RobotOptions(gravity=(1.0, -2.0, -3.0))
    robot = load_model(robots / "ur_description/urdf/ur10_robot.urdf", options)
    q = states(robot)[0]
    zero = np.zeros_like(q)
    data = robot.pinocchio.createData()
    wanted = np.array([pin.computeGeneralizedGravity(robot.pinocchio, data, row) for row in q])
    assert inverse_dynamics(build_mujoco(robot, 1e-3), q, zero, zero) == pytest.approx(wanted, abs=1e-9)


def test_effort_is_what_the_drive_delivers(robots):
    """The reported effort is bodies + rotor + friction + offset, with MuJoCo's own acceleration."""
    robot = load_with_locks(robots / ROBOTS[0])
    simulated = SimulatedRobot(robot, SimulationOptions(seed=2), start=np.array([0, -0.8, 0, -2.3, 0, 1.6, 0.8]))
    data = robot.pinocchio.createData()
    errors, before, applied = [], None, np.zeros(7)
    for step in range(400):
        simulated.command_effort(np.array([8.0, -25, 3, 22, 1, 2.5, 0.6]) * (1 + 0.3 * np.sin(step / 60)))
        state = simulated.true_state()
        if before is not None and (np.abs(state.velocity) > 0.05).all():
            acceleration = (state.velocity - before.velocity) / 1e-3
            middle = 0.5 * (state.velocity + before.velocity)
            drives = simulated.drives
            wanted = (
                pin.rnea(robot.pinocchio, data, before.position, before.velocity, acceleration)
                + drives.rotor_inertia * acceleration
                + drives.viscous * middle
                + drives.coulomb * np.sign(middle)
                + drives.offset
            )
            errors.append(np.abs(wanted - applied))
        before, applied = state, simulated._applied.copy()
        simulated.step()
    assert len(errors) > 100
    assert np.median(errors, axis=0) == pytest.approx(np.zeros(7), abs=0.02)


def test_without_mujoco_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match="needs MuJoCo, which is not installed; pip install mujoco$"):
        import_mujoco()


def test_a_urdf_that_mujoco_refuses_is_a_clean_error(robots, monkeypatch):
    robot = load_with_locks(robots / ROBOTS[1])

    def refuse(text):
        raise ValueError("broken\nin two lines")

    monkeypatch.setattr(mujoco.MjSpec, "from_string", staticmethod(refuse))
    with pytest.raises(ModelError, match=r"MuJoCo refuses it \(broken\)"):
        build_mujoco(robot, 1e-3)
