"""Results in the formats of simulators: MuJoCo and Pinocchio read back the torque that the export states."""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.robots.example_robots import ARMS, all_locked, load_with_locks
from support.robots.random_robots import load_with, random_bodies, random_urdf

from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.report.results import Result
from inertid_ros.robot.layout import Coupling
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.rotors import Rotor
from inertid_ros.simulation.export import export, simulated_part, simulated_torque

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")


def _result(model: RobotModel, seed: int) -> Result:
    """Result with random bodies and drives."""
    rng, layout = np.random.default_rng(seed), model.layout
    parameters = rng.uniform(0.01, 1.0, layout.size)
    S = np.eye(4) + 0.2 * rng.normal(size=(len(model.link_names), 4, 4))
    bodies = S @ pseudo_inertia(model.consistent_body_prior - model.body_locked) @ S.transpose(0, 2, 1)
    parameters[: layout.body_size] = (from_pseudo_inertia(bodies) + model.body_locked).ravel()
    parameters[layout.body_size : layout.rotor_end] = random_bodies(rng, len(layout.rotors)).ravel()
    return Result(".", model, parameters, model.prior, np.eye(layout.size), {})


def _mujoco_torque(model: RobotModel, compiled, states) -> np.ndarray:
    """Inverse dynamics of MuJoCo, and the friction that its constraint solver would apply."""
    compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, locked = mujoco.MjData(compiled), all_locked(model)
    joints = [compiled.joint(name) for name in model.joint_names]
    dofs, places = [int(joint.dofadr[0]) for joint in joints], [int(joint.qposadr[0]) for joint in joints]
    torque = []
    for q, v, a in zip(states.q, states.v, states.a, strict=True):
        data.qvel[:] = data.qacc[:] = 0
        for name, position in locked.items():
            data.joint(name).qpos = position
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q, v, a
        mujoco.mj_inverse(compiled, data)
        friction = compiled.dof_frictionloss * np.sign(data.qvel)
        if compiled.ntendon:
            moments = np.zeros((compiled.ntendon, compiled.nv))
            mujoco.mju_sparse2dense(moments, data.ten_J, compiled.ten_J_rownnz, compiled.ten_J_rowadr,
                compiled.ten_J_colind)
            friction += moments.T @ (compiled.tendon_frictionloss * np.sign(moments @ data.qvel))
        torque.append((data.qfrc_inverse + friction)[dofs])
    return np.array(torque)


def _check(model: RobotModel, seed: int) -> str:
    result, states = _result(model, seed), sample_states(model, 20)
    exported = export(result, "mjcf")
    parameters = result.parameters.copy()
    parameters[model.layout.drive("offset")] = 0
    part = simulated_part(model, parameters, "mjcf")
    torque = _mujoco_torque(model, mujoco.MjModel.from_xml_string(exported.text), states)
    expected = simulated_torque(model, *part, states)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())
    return exported.text


@pytest.mark.parametrize("seed", range(10))
def test_mujoco_predicts_the_exported_part_of_random_robots(seed):
    rng = np.random.default_rng(seed)
    _check(load_model(random_urdf(rng, int(rng.integers(1, 8)))), seed)


@pytest.mark.parametrize("arm", ARMS)
def test_mujoco_predicts_the_exported_part_of_example_robots(arm, robots):
    _check(load_with_locks(robots / arm), 1)
