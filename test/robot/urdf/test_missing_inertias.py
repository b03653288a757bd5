"""Links without inertia, and units that no robot can be in."""

import re

import numpy as np
import pytest
from support.robots.example_robots import ARMS
from support.robots.random_robots import random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.core.inertial_parameters import is_consistent, mass_com_inertia
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf.shapes import DENSITY, convex_hull

INERTIAL = re.compile("<inertial>.*?</inertial>", re.DOTALL)
BOX = np.array(np.meshgrid([-0.5, 0.5], [-1, 1], [0, 3])).reshape(3, -1).T


def test_the_hull_of_a_box_has_the_inertia_of_a_box():
    mass, com, inertia = mass_com_inertia(convex_hull(BOX, 2.0))
    assert mass == pytest.approx(12.0) and com == pytest.approx(np.array([0.0, 0.0, 1.5]), abs=1e-12)
    assert inertia == pytest.approx(np.diag([13.0, 10.0, 5.0]), abs=1e-9)
    flat = convex_hull(BOX * [1, 1, 0], 1000.0)
    assert flat[0] == pytest.approx(1000 * 1.002 * 2.002 * 0.002) and is_consistent(flat)


@pytest.mark.parametrize("shape", ["collision", "visual"])
@pytest.mark.parametrize("before", ["", '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" '
                                    'iyz="0"/></inertial>'])  # fmt: skip
def test_a_link_without_inertia_has_that_of_its_shapes(shape, before, caplog):
    log_once.cache_clear()
    content = '<origin xyz="0.5 0 0" rpy="0 0 1.5707963267948966"/><geometry><box size="0.1 0.2 0.3"/></geometry>'
    box = f"<{shape}>{content}</{shape}>"
    text = INERTIAL.sub(before + box, random_urdf(np.random.default_rng(0), 3, branched=False))
    model = load_model(text)
    mass, com, inertia = mass_com_inertia(model.body_prior)
    assert mass == pytest.approx(DENSITY * 0.006) and com[:, 0] == pytest.approx(0.5)
    assert inertia[0] == pytest.approx(mass[0] / 12 * np.diag([0.01 + 0.09, 0.04 + 0.09, 0.05]), abs=1e-12)
    assert caplog.text.count("no inertia for link0, link1, link2;") == 1
    again = load_model(write_urdf(model, model.body_prior))
    assert again.body_prior == pytest.approx(model.body_prior) and again.hash == model.hash


def test_links_without_shapes_are_bars_and_a_locked_link_counts_with_its_body():
    text = random_urdf(np.random.default_rng(1), 3, branched=False)
    bare = load_model(INERTIAL.sub("", text))
    assert is_consistent(bare.body_prior).all() and (bare.body_prior[:, 0] > 0.05).all()
    first = INERTIAL.sub("", text, count=1)
    others = load_model(text).body_prior[1:]
    assert load_model(first).body_prior[1:] == pytest.approx(others)
    locked = load_model(INERTIAL.sub("", text), RobotOptions(locked_joints={"joint2": 0.0}))
    assert is_consistent(locked.body_prior).all()


def test_a_link_without_inertia_that_carries_a_locked_one_gets_its_own():
    text = random_urdf(np.random.default_rng(2), 3, branched=False)
    *_, last = list(INERTIAL.finditer(text))
    carried = float(re.search('mass value="([^"]*)"', last[0])[1])
    middle = list(INERTIAL.finditer(text))[-2]
    model = load_model(text[: middle.start()] + text[middle.end() :], RobotOptions(locked_joints={"joint2": 0.0}))
    assert model.body_prior[-1, 0] > carried + 0.05 and model.body_locked[-1, 0] == pytest.approx(carried)
    assert is_consistent(model.body_prior - model.body_locked).all()


def test_a_robot_that_is_only_watched_needs_no_shapes(monkeypatch):
    """A description may come while a robot moves, and reading meshes may take a minute."""
    none = ([], {}, {})
    monkeypatch.setattr(
        "inertid_ros.robot.urdf.shapes.read_shapes", lambda _, frames, *__, **___: none if not frames else 1 / 0)
    box = "<visual><geometry><box size='1 1 1'/></geometry></visual>"
    text = INERTIAL.sub(box, random_urdf(np.random.default_rng(1), 3))
    model = load_model(text, shapes=False)
    assert model.urdf == text and is_consistent(model.body_prior).all()
    monkeypatch.undo()
    assert load_model(text).hash == model.hash


def test_a_published_humanoid_without_some_inertias_loads(robots):
    model = load_model(robots / "human_description/robots/human.urdf")
    assert (model.body_prior[:, 0] > 0).all() and is_consistent(model.consistent_body_prior).all()


def _scaled(text, masses, inertias):
    text = re.sub('mass value="([^"]*)"', lambda m: f'mass value="{float(m[1]) * masses!r}"', text)
    return re.sub('(i[xyz]{2})="([^"]*)"', lambda m: f'{m[1]}="{float(m[2]) * inertias!r}"', text)


@pytest.mark.parametrize("arm", [ARMS[0], *ARMS[2:10]])
def test_impossible_units_are_named_with_the_factor_and_right_ones_are_not(robots, arm, caplog):
    text = (robots / arm).read_text()
    log_once.cache_clear()
    load_model(text)
    assert "masses are in" not in caplog.text
    with pytest.raises(ModelError, match=r"^URDF link '.*radius of gyration of .* kg mm\^2: multiply all by 1e-6"):
        load_model(_scaled(text, 1.0, 1e6))
    with pytest.raises(ModelError, match=r"by 1e-9, and masses by 1e-3, if they are in g mm\^2 and g"):
        load_model(_scaled(text, 1e3, 1e9))
    load_model(_scaled(text, 1e3, 1e3))
    assert "if masses are in grams, multiply masses and inertias by 1e-3" in caplog.text
    load_model(_scaled(text, 1e-3, 1e-3))
    assert "if masses are in tonnes, multiply masses and inertias by 1e3" in caplog.text
