"""Contacts: external wrenches against the Jacobians of Pinocchio, and wrenches predicted from joint torques."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.free_base import free_model, random_flight

from inertid_ros.config.robot import ContactOptions, PlateOptions, RobotOptions
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.robot.contacts import contact_jacobians, external_force, predict_wrenches
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import legged_robot

HUMANOIDS = {
    "talos_data/robots/talos_reduced.urdf": ("leg_left_6_link", "arm_right_7_link"),
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": ("left_ankle_roll_link", "right_wrist_yaw_link"),
    "simple_humanoid_description/urdf/simple_humanoid.urdf": ("l_ankle", "r_wrist"),
    "kinova_description/robots/kinova.urdf": ("j2s6s200_link_6", "j2s6s200_link_3"),
}


@pytest.mark.parametrize("base", ["free", "fixed"])
@pytest.mark.parametrize("name", HUMANOIDS)
def test_wrenches_enter_as_pinocchio_says(robots, name, base):
    foot, hand = HUMANOIDS[name]
    plates = {"plate": PlateOptions(foot, (0.3, -0.2, 0.1), (0.4, -1.0, 2.0))}
    contacts = {"sensor": ContactOptions(hand)}
    model = load_model(robots / name, RobotOptions(base=base, contacts=contacts, plates=plates))
    rng, kinematics = np.random.default_rng(1), model.pinocchio
    data = kinematics.createData()
    lower = np.r_[-np.ones(model.positions - model.joints), -np.ones(model.joints)]
    q = np.array([pin.randomConfiguration(kinematics, lower, -lower) for _ in range(5)])
    wrenches = {"plate": rng.normal(size=(5, 6)), "sensor": rng.normal(size=(5, 6))}
    found = external_force(model, q, wrenches)
    for row, configuration in enumerate(q):
        pin.computeJointJacobians(kinematics, data, configuration)
        pin.updateFramePlacements(kinematics, data)
        wanted = np.zeros(kinematics.nv)
        for contact in model.contacts:
            frame = kinematics.getFrameId(contact.frame)
            wrench = pin.Force(wrenches[contact.name][row])
            if plate := contact.plate:
                wrench = data.oMf[frame].actInv(pin.SE3(plate.rotation, np.array(plate.xyz)).act(wrench))
            jacobian = pin.getFrameJacobian(kinematics, data, frame, pin.ReferenceFrame.LOCAL)
            wanted += jacobian.T @ wrench.vector
        np.testing.assert_allclose(found[row], wanted, atol=1e-10)


def test_a_wrench_without_a_contact_is_refused(robots):
    model = load_model(robots / "simple_humanoid_description/urdf/simple_humanoid.urdf", RobotOptions(base="free"))
    with pytest.raises(RecordingError, match="'left_plate'.*no contact"):
        external_force(model, np.zeros((2, model.positions)), {"left_plate": np.zeros((2, 6))})


def test_wrenches_of_two_contacts_are_what_torques_leave():
    plates = {"plate": PlateOptions("right_foot", (0.1, 0.2, 0.0))}
    options = RobotOptions(base="free", contacts={"foot": ContactOptions("left_foot")}, plates=plates)
    model = load_model(legged_robot("biped").urdf, options)
    rng = np.random.default_rng(0)
    q, torque = random_flight(rng, model, 10).q, rng.normal(size=(10, model.joints))
    wrenches = {name: rng.normal(size=(10, 6)) for name in ("foot", "plate")}
    external = external_force(model, q, wrenches)
    stacked = np.hstack(list(wrenches.values()))
    np.testing.assert_allclose((contact_jacobians(model, q) @ stacked[..., None])[..., 0], external, atol=1e-12)
    force = external.copy()
    force[:, 6:] += torque
    found = predict_wrenches(model, force, torque, q)
    for name, wrench in wrenches.items():
        np.testing.assert_allclose(found[name], wrench, atol=1e-8)


def test_without_contacts_there_is_nothing_to_predict():
    model = free_model(3, 2)
    with pytest.raises(ModelError, match="no contacts"):
        predict_wrenches(model, np.zeros((1, 8)), np.zeros((1, 2)), random_flight(np.random.default_rng(0), model, 1).q)
