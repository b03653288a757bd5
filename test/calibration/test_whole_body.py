"""Centre of mass, momentum and wrenches of robots on a free base, against Pinocchio and random draws of parameters."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.robots.free_base import free_model, random_flight
from support.robots.random_robots import random_bodies

from inertid_ros.calibration.prediction import whole_body_quantities
from inertid_ros.config.robot import PlateOptions, RobotOptions
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.contacts import external_force
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import legged_robot


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["force", "momentum_change", "momentum"])
def test_centre_of_mass_and_momentum_are_pinocchios(seed, kind):
    rng, model = np.random.default_rng(seed), free_model(seed, 3)
    bodies = random_bodies(rng, len(model.body_prior))
    parameters = np.zeros(model.layout.size)
    parameters[: bodies.size] = bodies.ravel()
    flight = random_flight(rng, model, 5)
    equations = equations_of(model, kind)
    centre, momentum = whole_body_quantities(equations, parameters, np.zeros((len(parameters),) * 2), [flight])
    tree = model.with_bodies(bodies)
    for row, (q, v) in enumerate(zip(flight.q, flight.v, strict=True)):
        if kind == "momentum":  # in the frame of the base
            q = np.concatenate([pin.neutral(tree)[:7], q[7:]])
        data = tree.createData()
        centroidal = pin.computeCentroidalMomentum(tree, data, q, v).vector
        np.testing.assert_allclose(centre.value[row], pin.centerOfMass(tree, data, q), atol=1e-9)
        np.testing.assert_allclose(momentum.value[row], centroidal, atol=1e-9)
    assert not centre.deviation.any() and not momentum.deviation.any()


def test_deviations_are_those_of_random_parameters():
    rng, model = np.random.default_rng(0), free_model(1, 2)
    parameters = model.prior.copy()
    root = 1e-3 * rng.normal(size=(len(parameters), len(parameters))) * np.abs(parameters)[:, None]
    flight, equations = random_flight(rng, model, 3), equations_of(model, "force")
    told = whole_body_quantities(equations, parameters, root @ root.T, [flight])
    others = [parameters + root @ rng.normal(size=len(parameters)) for _ in range(2000)]
    drawn = [whole_body_quantities(equations, other, root @ root.T, [flight]) for other in others]
    for index, quantity in enumerate(told):
        spread = np.std([draw[index].value for draw in drawn], axis=0)
        np.testing.assert_allclose(quantity.deviation, spread, rtol=0.1)


def test_the_error_of_wrenches_is_that_of_the_measurement():
    plates = {"left": PlateOptions("left_foot", (0.0, 0.1, 0.0)), "right": PlateOptions("right_foot", (0.0, -0.1, 0.0))}
    model = load_model(legged_robot("biped").urdf, RobotOptions(base="free", plates=plates))
    rng, equations = np.random.default_rng(0), equations_of(model, "force")
    flight = random_flight(rng, model, 6)
    wrong = {name: rng.normal(size=(6, 6)) for name in plates}
    measured = equations.predict(model.prior, flight) + external_force(model, flight.q, wrong)
    mask = flight.mask.copy()
    mask[2, 7] = False
    samples = replace(flight, tau=measured, mask=mask)
    *_, errors = whole_body_quantities(equations, model.prior, np.eye(model.layout.size), [samples])
    assert np.isnan(errors.value[2]).all()
    rest = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(errors.value[rest], np.hstack([wrong["left"], wrong["right"]])[rest], atol=1e-8)
    assert (errors.deviation > 0).all() and errors.channels[0] == "left force x"


def test_a_robot_on_a_fixed_base_has_none():
    model = load_model(legged_robot("biped").urdf)
    assert not whole_body_quantities(equations_of(model, "force"), model.prior, np.eye(len(model.prior)), [])
