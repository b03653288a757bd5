"""User terms in a fit: kept where held-out blocks ask for them, known values held, loads those of the found bodies."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_model

from inertid_ros.config.robot import RobotOptions, TermOptions
from inertid_ros.core.samples import Samples
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.layout import UserTerm
from inertid_ros.robot.model import load_model

SPRING = UserTerm("spring", "joint1", ("sin(q)", "cos(q)"))
DRAG = UserTerm("drag", "joint2", ("abs(v)*v",), non_negative=True)
GEAR = UserTerm("gear", "joint1", ("abs(load)*direction",), non_negative=True)
NOISE = 0.1


def experiment(terms, values, seed=5, count=4000):
    """A robot with some terms, samples of it, and the wrong one that is given."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 3, branched=False, terms=terms)
    bodies = perturb(model, rng)
    truth = np.concatenate([bodies.ravel(), rng.uniform(0.1, 0.5, model.layout.term_start - 30), values])
    q, v, a = random_motion(rng, 3).sample(0.01 * np.arange(count))
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(0.01 * np.arange(count), q, v, a, np.zeros_like(q), every, every[:, 0])
    tau = ForceEquations(replace(model, fitted_bodies=bodies)).predict(truth, samples)
    return model, truth, replace(samples, tau=tau + NOISE * rng.normal(size=tau.shape))


def test_terms_that_are_there_stay_and_others_go():
    model, truth, samples = experiment((SPRING, DRAG), (12.0, -5.0, 0.0))
    estimate = identify(model, [samples])
    spring, drag = estimate.term_choices
    assert spring.kept and spring.gain > 0.5 and not drag.kept and abs(drag.gain) < 0.01
    assert estimate.layout.terms == (SPRING,)
    columns = estimate.layout.term(0)
    error = estimate.parameters[columns] - truth[model.layout.term(0)]
    assert (np.abs(error) < 4 * estimate.standard_deviation[columns]).all()
    assert np.abs(estimate.residual_deviation / NOISE - 1).max() < 0.1
    without = identify(model.with_layout(terms=()), [samples])
    assert without.train_relative_error > 1.5 * estimate.train_relative_error


def test_a_term_that_explains_nothing_rarely_stays():
    kept = 0
    for seed in range(6):
        model, _, samples = experiment((DRAG,), (0.0,), seed, 1500)
        kept += identify(model, [samples]).term_choices[0].kept
    assert kept <= 1


def test_known_values_are_held_and_terms_kept_always_stay():
    known = replace(SPRING, values=(12.0, -5.0))
    model, _, samples = experiment((SPRING, DRAG), (12.0, -5.0, 0.0))
    estimate = identify(model.with_layout(terms=(known, replace(DRAG, always=True))), [samples])
    np.testing.assert_allclose(estimate.parameters[-3:-1], (12.0, -5.0), rtol=1e-9)
    np.testing.assert_allclose(estimate.standard_deviation[-3:-1], 0.0, atol=1e-6)
    assert [choice.kept for choice in estimate.term_choices] == [True, True]
    assert estimate.parameters[-1] == pytest.approx(0.0, abs=0.05)


def test_friction_in_proportion_to_load():
    model, truth, samples = experiment((GEAR,), (0.15,))
    estimate = identify(model, [samples])
    assert estimate.term_choices[0].kept
    assert estimate.parameters[-1] == pytest.approx(0.15, abs=0.01)
    assert np.abs(estimate.residual_deviation / NOISE - 1).max() < 0.1


def upright_arm() -> str:
    """URDF of an arm that turns about the vertical, with a shoulder and an elbow whose axes lie flat."""
    links = [
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia ixx="{size}" iyy="{size}"'
        f' izz="{size}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, com, mass, size in (
            ("base", "0 0 0", 30, 1), ("column", "0 0 0.2", 20, 0.5), ("upper", "0.3 0 0", 12, 0.3),
            ("lower", "0.25 0 0", 6, 0.1))]
    joints = [
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/>'
        f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3" effort="900"/></joint>'
        for name, parent, child, place, axis in (
            ("turn", "base", "column", "0 0 0.3", "0 0 1"), ("shoulder", "column", "upper", "0.1 0 0.2", "0 1 0"),
            ("elbow", "upper", "lower", "0.6 0 0", "0 1 0"))]
    return f'<robot name="upright">{"".join(links + joints)}</robot>'


@pytest.mark.parametrize(("size", "there"), [(110.0, True), (0.0, False)])
def test_a_counterbalance_that_a_link_could_make_is_told_by_the_bodies(size, there):
    """No block is predicted better with it: the weight of the link, turned round, has the same torque."""
    term = TermOptions("shoulder", "counterbalance")
    rng = np.random.default_rng(3)
    model = load_model(upright_arm(), RobotOptions(terms={"balance": term}))
    bodies = perturb(model, rng)
    truth = np.concatenate([bodies.ravel(), rng.uniform(0.5, 2.0, model.layout.term_start - 30), (0.3 * size, size)])
    time = 0.01 * np.arange(2000)
    q, v, a = (0.6 * each for each in random_motion(rng, 3).sample(time))
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0])
    tau = ForceEquations(model).predict(truth, samples) + rng.normal(size=q.shape)
    estimate = identify(model, [replace(samples, tau=tau)])
    (choice,) = estimate.term_choices
    assert choice.kept is there and (choice.body_log_odds > 10) is there
    upper = estimate.bodies[1]
    assert upper[1] / upper[0] == pytest.approx(bodies[1, 1] / bodies[1, 0], abs=0.15)
    if there:
        without = identify(model.with_layout(terms=()), [replace(samples, tau=tau)])
        assert without.bodies[1, 1] < 0  # its centre of mass lies behind the shoulder
        assert without.train_relative_error < 1.1 * estimate.train_relative_error


def test_a_stiffness_below_zero_is_a_term_of_its_own():
    """Balanced too much, a joint is pushed away; the drive term of that name only ever pulls back."""
    spring = UserTerm("spring", "joint0", ("q",))
    model, truth, samples = experiment((spring,), (-6.0,))
    estimate = identify(model, [samples])
    sum_of_both = estimate.parameters[-1] + estimate.drive("stiffness")[0]
    assert estimate.term_choices[0].kept and estimate.parameters[-1] < -4
    assert sum_of_both == pytest.approx(truth[-1] + truth[model.layout.drive("stiffness")][0], abs=0.2)
