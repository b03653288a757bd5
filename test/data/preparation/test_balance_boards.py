"""Plates that measure only the force along their normal and the centre of pressure: what is left of the equations."""

from dataclasses import replace

import attrs
import numpy as np
import pinocchio as pin
import pytest
from support.robots.free_base import free_model, random_flight
from support.robots.random_robots import random_bodies

from inertid_ros.config.recordings import BaseMotionOptions, PrepareOptions
from inertid_ros.config.robot import PlateOptions, RobotOptions
from inertid_ros.core.errors import ConfigurationError, InertidError, ModelError
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.base_parameters.closed_form import structural_base_parameters
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.contacts import UNMEASURED, Contact, Plate, contacts_of
from inertid_ros.robot.model import load_model
from inertid_ros.robot.rotors import Rotor


def on_board(model, plate):
    """The robot with its last link on a balance board."""
    return replace(model, contacts=(Contact("board", model.link_names[-1], replace(plate, partial=True)),))


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_base_rows_are_the_wrench_about_the_board(seed, rotors):
    """Against Pinocchio's inverse dynamics, whose wrench on the base is carried to the board's frame."""
    rng, given = np.random.default_rng(seed), free_model(seed, 4)
    if rotors:
        rotor = Rotor("motor", given.joint_names[1], given.link_names[0], 9.0, 0.2, (1e-4, 0, 0, 1e-4, 0, 1e-4))
        given = replace(given, layout=replace(given.layout, rotors=(rotor,)))
    plate = Plate(tuple(rng.normal(size=3)), tuple(rng.normal(size=3)))
    model = on_board(given, plate)
    samples = random_flight(rng, model, 12)
    parameters = model.prior.copy()
    parameters[: 10 * len(model.link_names)] = random_bodies(rng, len(model.link_names)).ravel()
    expected = ForceEquations(given).predict(parameters, samples)
    board = pin.SE3(plate.rotation, np.array(plate.xyz))
    for row, q in zip(expected, samples.q, strict=True):
        base = board.actInv(pin.XYZQUATToSE3(q[:7]))
        row[:6] = base.act(pin.Force(row[:6])).vector
    equations = ForceEquations(model)
    np.testing.assert_allclose(equations.predict(parameters, samples), expected, rtol=1e-10, atol=1e-9)
    (found,) = dense_equations(equations, samples)
    for channel, (A, _) in enumerate(found):
        found_here = A @ parameters[equations.columns[channel]]
        np.testing.assert_allclose(found_here, expected[:, channel], rtol=1e-9, atol=1e-8)


def test_information_about_a_board_is_not_merged_with_that_about_the_base():
    given = free_model(0, 3)
    model = on_board(given, Plate())
    samples = random_flight(np.random.default_rng(0), model, 60)
    with pytest.raises(InertidError):
        compress(given, [samples]) + compress(model, [samples])


def test_boards_show_as_many_combinations_as_whole_plates():
    """Vertical force and its centre are enough where the base tilts ([Lee2019]_ sec. 3.6.3)."""
    given = free_model(1, 3)
    model = on_board(given, Plate((0.1, 0.2, 0.3)))
    samples = random_flight(np.random.default_rng(0), model, 200)
    mask = samples.mask.copy()
    mask[:, UNMEASURED] = mask[:, 6:] = False
    (found,) = dense_equations(ForceEquations(model), replace(samples, mask=mask))
    rows = np.zeros((3 * len(samples), model.layout.size))
    for part, channel in zip(np.split(rows, 3), (2, 3, 4), strict=True):
        part[:, ForceEquations(model).columns[channel]] = found[channel][0]
    values = np.linalg.svd(rows[:, : model.layout.body_size], compute_uv=False)
    base = structural_base_parameters(given)
    inertial = sum(index < model.layout.body_size for index in base.independent)
    assert np.sum(values > 1e-9 * values[0]) == inertial


def test_boards_in_several_planes_are_refused():
    given = free_model(0, 3)
    boards = {"a": PlateOptions(given.link_names[1], measures="pressure"),
        "b": PlateOptions(given.link_names[2], (0, 0, 0.1), measures="pressure")}
    with pytest.raises(ModelError, match="do not lie in one plane"):
        load_model(given.urdf, attrs.evolve(given.options, plates=boards))


def test_options_of_a_board():
    given = RobotOptions(plates={"board": PlateOptions("foot", (0.0, 0.1, 0.0), measures="pressure")})
    (contact,) = contacts_of(given)
    assert contact.plate == Plate((0.0, 0.1, 0.0), partial=True)
    with pytest.raises(ConfigurationError, match="measures is 'weight'; choose from wrench, pressure"):
        PlateOptions("foot", measures="weight")


@pytest.fixture(scope="module")
def recorded_biped():
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
    from support.recordings import biped

    return biped


def boards(model):
    """The robot on balance boards instead of plates."""
    contacts = tuple(replace(contact, plate=replace(contact.plate, partial=True)) for contact in model.contacts)
    return replace(model, contacts=contacts)


def without_the_unmeasured(recording):
    wrenches = {name: wrench.copy() for name, wrench in recording.wrenches.items()}
    for wrench in wrenches.values():
        wrench[:, UNMEASURED] = 0.0
    return replace(recording, wrenches=wrenches)


@pytest.mark.xdist_group("biped")
def test_biped_on_balance_boards_is_weighed_and_its_centre_found(recorded_biped):
    """Only vertical force and centre of pressure, and no torque of a leg that stands on a board."""
    options = PrepareOptions(base=BaseMotionOptions(motion_from="twist"))
    recording = without_the_unmeasured(recorded_biped.biped(movements=4, noise=False))
    exact = prepare(recording, boards(recorded_biped.truth()), options)
    assert not exact.mask[:, list(UNMEASURED)].any() and not exact.mask[:, 6:].any()
    assert exact.mask[:, 2:5].mean() > 0.9
    predicted = ForceEquations(boards(recorded_biped.truth())).predict(recorded_biped.truth().prior, exact)
    error = (exact.tau - predicted)[:, 2:5]
    assert np.sqrt(np.mean(error[exact.mask[:, 2:5].all(axis=1)] ** 2, axis=0)).max() < 1.0
    given = boards(recorded_biped.prior())
    estimate = identify(given, [prepare(without_the_unmeasured(recorded_biped.biped()), given, options)])
    configurations = exact.q[exact.usable][::20]
    before = recorded_biped.com_error(given, given.body_prior, configurations)
    assert before > 3 * recorded_biped.com_error(given, estimate.bodies, configurations)
    assert estimate.bodies[:, 0].sum() == pytest.approx(41.05, rel=0.005)
