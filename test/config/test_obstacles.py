"""Obstacles of the configuration: what cannot be a body is refused in one line that names the key."""

import pytest

from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.config.structuring import structure
from inertid_ros.core.errors import ConfigurationError


def read(obstacle: object) -> ExcitationConfiguration:
    content = {"excitation": {"collision": {"obstacles": {"table": obstacle}}}}
    return structure(ExcitationConfiguration, content, "plan.yaml")


def test_every_shape_is_read() -> None:
    box = {"shape": "box", "size": [1, 0.6, 0.04], "xyz": [0.6, 0, 0.1]}
    assert read(box).excitation.collision.obstacles["table"].size == (1.0, 0.6, 0.04)
    for shape in ("cylinder", "capsule"):
        assert read({"shape": shape, "radius": 0.1, "length": 1}).excitation.collision.obstacles["table"].length == 1.0


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        ({}, "shape"),
        ({"shape": "cone", "size": [1, 1, 1]}, "cone"),
        ({"shape": "box", "size": [1, 1]}, "2 values"),
        ({"shape": "box", "size": [1, 1, 0]}, "size"),
        ({"shape": "box"}, "size is missing"),
        ({"shape": "sphere", "radius": "x"}, "expected a number"),
        ({"shape": "sphere", "radius": -1}, "radius"),
        ({"shape": "sphere", "radius": 1, "length": 1}, "length does not belong"),
        ({"shape": "sphere", "radius": 1, "colour": "red"}, "colour"),
        ({"shape": "sphere", "radius": 1, "xyz": [0, float("nan"), 0]}, "xyz"),
        ({"shape": "sphere", "radius": float("inf")}, "radius"),
        ("shape:box,size:1 1 1", "obstacles.table"),
    ],
)
def test_impossible_obstacles_are_refused(obstacle: object, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(obstacle)
    message = str(caught.value)
    assert message.startswith("plan.yaml: ") and "obstacles" in message and reason in message and "\n" not in message
