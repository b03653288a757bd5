"""Bounds of adapting links by configuration: masses, and ellipsoids around the links."""

import numpy as np
import pytest
from support.robots.random_robots import random_urdf

from inertid_ros.adaptive_control.controlled_arm import FirstEstimate, adaptive_controller, link_bounds
from inertid_ros.adaptive_control.controller import Reference
from inertid_ros.adaptive_control.inertial_manifold import step_within_factor, within_factor
from inertid_ros.config.excitation import EffortControlOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.robot.link_shapes import surrounding_ellipsoids
from inertid_ros.robot.model import load_model


def test_no_step_leaves_the_bounds():
    """1,000 draws of robot, covector and step size."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        model = load_model(random_urdf(rng, 3, branched=False))
        first, links = model.consistent_body_prior, model.link_names
        body = first
        masses = {links[0]: (0.9 * body[0, 0], 1.2 * body[0, 0])}
        bounds = link_bounds(model, body, EffortControlOptions(masses=masses, inside_links=True))
        ellipsoids = surrounding_ellipsoids(model, shapes=True)
        assert set(bounds) == {0, 1, 2}
        for _ in range(20):
            index = int(rng.integers(3))
            change = bounds[index].step(body[index], rng.normal(size=10), 10 ** rng.uniform(-3, 6)) - body[index]
            moved = step_within_factor(body[index], change, first[index], 5.0)
            np.testing.assert_array_equal(within_factor(moved[None], first[index][None], 5.0)[0], moved)
            assert is_consistent(moved[None]).all() and ellipsoids[index].row @ moved > 0
            if index == 0:
                assert masses[links[0]][0] < moved[0] < masses[links[0]][1]
            body = np.array([moved if k == index else each for k, each in enumerate(body)])


def test_the_controller_keeps_configured_bounds():
    model = load_model(random_urdf(np.random.default_rng(0), 3, branched=False))
    body, last = model.consistent_body_prior, model.link_names[2]
    options = EffortControlOptions(masses={last: (0.5 * body[2, 0], 1.1 * body[2, 0])}, speed=1e3, dead_zone=0.0)
    controller, zero = adaptive_controller(FirstEstimate(model, body), options), np.zeros(3)
    for _ in range(200):
        controller.step(np.full(3, 0.01), zero, Reference(zero, zero, zero), 0.01)
    assert 0.5 < controller.bodies[2, 0] / body[2, 0] < 1.1
    assert not np.allclose(controller.bodies[2], body[2]) and not np.allclose(controller.bodies[0], body[0])
    assert is_consistent(controller.bodies).all()


def test_bounds_that_the_first_estimate_breaks_are_told():
    model = load_model(random_urdf(np.random.default_rng(0), 3, branched=False))
    link = model.link_names[1]
    with pytest.raises(ModelError, match=f"first estimate of '{link}', .* kg, is outside its bounds"):
        link_bounds(model, model.consistent_body_prior, EffortControlOptions(masses={link: (0.0, 1e-3)}))
    with pytest.raises(ModelError, match="control.masses names 'gripper', which is not a moving link"):
        options = EffortControlOptions(masses={"gripper": (1.0, 2.0)})
        adaptive_controller(FirstEstimate(model, model.consistent_body_prior), options)


def test_bounds_without_effect_are_refused():
    urdf = random_urdf(np.random.default_rng(0), 3, branched=False)
    model = load_model(urdf)
    first, last = model.link_names[0], model.link_names[2]
    fixed = EffortControlOptions(masses={first: (1.0, 2.0)}, adapted_links=(last,))
    with pytest.raises(ModelError, match=f"control.masses bounds '{first}', which does not adapt; add it to"):
        adaptive_controller(FirstEstimate(model, model.consistent_body_prior), fixed)
    mesh = '<collision><geometry><mesh filename="package://missing/link.stl"/></geometry></collision></link>'
    start = urdf.index(f'<link name="{last}"')
    meshed = load_model(urdf[:start] + urdf[start:].replace("</link>", mesh, 1))
    with pytest.raises(ModelError, match=f"control.inside_links: a collision shape of '{last}' cannot be read"):
        link_bounds(meshed, meshed.consistent_body_prior, EffortControlOptions(inside_links=True))
    elsewhere = EffortControlOptions(inside_links=True, adapted_links=(first,))
    assert set(link_bounds(meshed, meshed.consistent_body_prior, elsewhere)) == {0}
