"""Contact wrenches from joint torques: those that act are found again."""

import numpy as np
import pytest
from support.robots.free_base import free_model, random_flight

from inertid_ros.core.errors import ModelError
from inertid_ros.robot.contacts import Contact, Plate, contact_jacobians, external_force, predict_wrenches
from inertid_ros.robot.model import ModelOptions, load_model
from inertid_ros.simulation.example_robots import exoskeleton_urdf


def test_wrenches_of_two_contacts_are_what_torques_leave():
    contacts = (Contact("foot", "left_foot"), Contact("plate", "right_foot", Plate((0.1, 0.2, 0.0))))
    model = load_model(exoskeleton_urdf(), ModelOptions(base="free", contacts=contacts))
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
