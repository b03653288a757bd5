"""Base acceleration from an inertial measurement unit, against Pinocchio."""

import numpy as np
import pinocchio as pin
from support.robots.free_base import free_model

from inertid_ros.data.preparation.imu import base_acceleration


def test_the_acceleration_of_a_base_comes_from_an_inertial_unit_anywhere_on_it():
    rng, place = np.random.default_rng(0), np.array([0.1, -0.2, 0.35])
    model = free_model(0, 1).pinocchio
    frame = model.addFrame(pin.Frame("imu", 1, 0, pin.SE3(np.eye(3), place), pin.FrameType.OP_FRAME))
    data, q = model.createData(), pin.neutral(model)
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    v, a = rng.normal(size=(2, model.nv))
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    at_unit = pin.getFrameClassicalAcceleration(model, data, frame, pin.ReferenceFrame.LOCAL).linear
    gravity = data.oMi[1].rotation.T @ model.gravity.linear
    found = base_acceleration(*(row[None] for row in (at_unit - gravity, v[3:6], a[3:6], v[:3])), place)
    np.testing.assert_allclose(found[0], np.concatenate([a[:3] - gravity, a[3:6]]), atol=1e-12)
