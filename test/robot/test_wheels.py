"""Reaction wheels: from configuration and URDF."""

import numpy as np
import pytest
from support.robots.floating_robots import diver, floating, satellite, wheel_urdf

from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.core.errors import ConfigurationError, ModelError
from inertid_ros.robot.model import load_model


def test_wheels_of_the_urdf_are_held_and_known():
    model = diver(np.random.default_rng(0))
    assert model.joint_names == ("J1", "J2", "J3", "J4")
    assert model.wheels.names == ("spin_a", "spin_b", "spin_c", "spin_d")
    assert model.wheels.bodies == (0, 0, 0, 1)
    expected = 0.05 * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.6, 0.8]])
    np.testing.assert_allclose(model.wheels.axes, expected, atol=1e-12)
    assert model.body_locked[0, 0] == pytest.approx(3.0)  # the wheels' mass is certain


def test_wheels_of_the_configuration():
    wheels = {"a": WheelOptions(0.2, "L0", (0.0, 0.0, 2.0)), "b": WheelOptions(0.1, "L2", (1.0, 0.0, 0.0))}
    options = RobotOptions(base="free", wheels=wheels)
    model = load_model(satellite(np.random.default_rng(0), 3).urdf, options)
    np.testing.assert_allclose(model.wheels.axes, [[0, 0, 0.2], [0.1, 0, 0]])
    assert model.wheels.bodies == (0, 2)


@pytest.mark.parametrize(
    ("wheel", "message"),
    [
        (WheelOptions(), "inertia is missing, so that its momentum is unknown"),
        (WheelOptions(0.1), "no link; give w=link:NAME"),
        (WheelOptions(0.1, "L0"), "no axis; give"),
        (WheelOptions(0.1, "nowhere", (1, 0, 0)), "no link 'nowhere'; its links are L0"),
    ],
)
def test_what_is_missing_is_named(wheel, message):
    urdf = satellite(np.random.default_rng(0), 2).urdf
    with pytest.raises(ModelError, match=message):
        floating(urdf, {"w": wheel})


def test_wheel_of_the_urdf_without_inertia():
    urdf = satellite(np.random.default_rng(0), 2).urdf
    bare = '<link name="r"/><joint name="w" type="continuous"><parent link="L0"/><child link="r"/></joint></robot>'
    with pytest.raises(ModelError, match="wheel 'w': its inertia is missing"):
        floating(urdf.replace("</robot>", bare), {"w": WheelOptions()})
    model = floating(urdf.replace("</robot>", bare), {"w": WheelOptions(0.3)})
    np.testing.assert_allclose(model.wheels.axes, [[0.3, 0, 0]], atol=1e-12)


def test_wheel_out_of_balance():
    urdf = satellite(np.random.default_rng(0), 2).urdf.replace(
        "</robot>", wheel_urdf("w", "L0", "0 0 1", across=0.03) + "</robot>"
    )
    with pytest.raises(ModelError, match="out of balance by 0.005"):
        floating(urdf, {"w": WheelOptions()})


def test_wheels_need_a_free_base():
    with pytest.raises(ConfigurationError, match="set base to free"):
        RobotOptions(wheels={"w": WheelOptions(0.1, "L0", (1, 0, 0))})
