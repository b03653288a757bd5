"""Units of limits and lengths: wrong ones are told with their factor, and no genuine robot is taken for wrong."""

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from support.robots.example_robots import ARMS
from support.robots.other_units import in_degrees, in_length, in_mass
from support.robots.random_robots import random_urdf

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.core.errors import InertidError, ModelError, log_once
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.robot.model import load_model


def arm(robots, name):
    return load_model((robots / name).read_text())


def with_limits(model, lower, upper, velocity=2.0):
    full = np.ones(model.joints)
    limits = replace(model.limits, lower=lower * full, upper=upper * full, velocity=velocity * full)
    return replace(model, limits=limits)


def test_no_published_robot_is_refused(robots, caplog):
    """All URDFs of the collection, in one test: it takes seconds."""
    log_once.cache_clear()
    count = 0
    for path in sorted(robots.rglob("*.urdf")):
        try:
            model = load_model(path.read_text())
        except InertidError as error:
            assert re.search("xacro|no movable joint", str(error)), error
            continue
        assert model.doubtful_limits == (), path
        count += 1
    assert count > 60
    assert not re.search("seem to be|fits no body|which is impossible", caplog.text)


@pytest.mark.parametrize("name", ARMS[:12:2])
def test_degrees_are_told_of_all_joints_or_some(robots, name):
    text = (robots / name).read_text()
    model = load_model(text)
    width = model.limits.upper - model.limits.lower
    limited = [joint for joint, one in zip(model.joint_names, width, strict=True) if np.isfinite(one) and one > 0.5]
    for joints in (limited, limited[::2]):
        degrees = load_model(in_degrees(text, joints))
        (found,) = degrees.doubtful_limits
        assert set(found.joints) == set(joints) and "looks like degrees" in found.evidence
        with pytest.raises(ModelError, match=r"rad looks like degrees.*by 0.0174533 in the URDF"):
            motion_limits(degrees)
        stated = yaml.safe_load(str(found).partition("or set limits.position: ")[2])
        limits = motion_limits(degrees, LimitOptions(position={name: tuple(pair) for name, pair in stated.items()}))
        right = motion_limits(model)
        assert np.abs(limits.lower - right.lower).max() < 0.06 and np.abs(limits.upper - right.upper).max() < 0.06


@pytest.mark.parametrize("name", ARMS[:2])
def test_speeds_in_degrees_are_told_and_planned_for_all_the_same(robots, name, caplog):
    text = in_degrees((robots / name).read_text(), keys=("velocity",))
    model = load_model(text)
    log_once.cache_clear()
    motion_limits(model)
    assert " looks like degrees per second (and " in caplog.text
    (found,) = model.doubtful_limits
    stated = yaml.safe_load(found.option)["limits.velocity"]
    caplog.clear()
    log_once.cache_clear()
    motion_limits(model, LimitOptions(velocity=stated))
    assert not caplog.text
    with pytest.raises(ModelError, match=r"looks like degrees \(and "):
        motion_limits(load_model(in_degrees(text)))


@pytest.mark.parametrize(
    ("lower", "upper", "velocity"),
    [
        (-2 * np.pi, 2 * np.pi, 3.14), (-9.42, 9.42, 15.0), (-10, 10, 1000), (-100, 100, 100), (-1e16, 1e16, 1e4),
        (-31.416, 31.416, 10), (-62.83, 62.83, 12), (-np.inf, np.inf, np.inf), (-7.9, 7.9, 52.4), (0, 0.9, 60.0),
    ],
)  # fmt: skip
def test_joints_of_many_turns_and_limits_that_stand_for_none_are_right(robots, lower, upper, velocity):
    assert not with_limits(arm(robots, ARMS[5]), lower, upper, velocity).doubtful_limits


def test_strokes_in_millimetres_are_told():
    text = random_urdf(np.random.default_rng(7), 4, branched=False)
    model = load_model(text)
    slides = np.abs(model.axes[:, :3]).max(axis=1) > 0
    assert slides.any() and not slides.all()
    wide = replace(model, limits=replace(model.limits, lower=np.zeros(4), upper=np.where(slides, 350.0, 3.0)))
    (found,) = wide.doubtful_limits
    assert "looks like millimetres" in found.evidence and len(found.joints) == slides.sum()
    with pytest.raises(ModelError, match="by 0.001 in the URDF"):
        motion_limits(wide)


@pytest.mark.parametrize("name", ARMS[::2])
@pytest.mark.parametrize(
    ("factor", "mass", "unit"),
    [(1e3, 1, "millimetres:"), (1e2, 1, "centimetres"), (1e3, 1e3, "millimetres, and masses in grams")],
)
def test_lengths_in_other_units_are_named(robots, name, factor, mass, unit):
    text = in_mass(in_length((robots / name).read_text(), factor), mass)
    with pytest.raises(ModelError, match=f"lengths seem to be in {unit}.*by {1 / factor:g}"):
        load_model(text)


@pytest.mark.parametrize(("size", "mass"), [(0.08, 1e-3), (12.0, 400.0), (60.0, 2000.0), (1.0, 1.0)])
def test_fingers_cranes_and_robots_far_from_the_origin_are_right(robots, size, mass, caplog):
    """A finger of 50 g, an excavator of 13 t, a crane; and an arm on a map, hundreds of metres from its origin."""
    text = in_mass(in_length((robots / ARMS[5]).read_text(), size), mass)
    log_once.cache_clear()
    model = load_model(text.replace('<origin xyz="0 0 0', '<origin xyz="500 300 0', 1) if size == 1.0 else text)
    assert not model.doubtful_limits
    assert "seem" not in caplog.text


def test_one_inertia_that_fits_no_body_is_told(robots, caplog):
    text = (robots / ARMS[5]).read_text()
    inertia = re.search(r'<inertia [^>]*izz="[^"]*"[^>]*/>', text[text.index("forearm_link") :])[0]
    wrong = re.sub('(i[xyz]{2})="([^"]*)"', lambda x: f'{x[1]}="{float(x[2]) * 1e6!r}"', inertia)
    log_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        load_model(text.replace(inertia, wrong, 1))
    assert "which is impossible; if its inertia is in kg mm^2, multiply it by 1e-6" in caplog.text
