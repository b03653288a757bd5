"""Option classes from nested mappings."""

from collections.abc import Mapping

import attrs
import pytest

from inertid_ros.config.option_fields import named, option, section
from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.config.robot import CouplingOptions, PlateOptions, RobotOptions
from inertid_ros.config.structuring import structure
from inertid_ros.core.errors import ConfigurationError


@attrs.frozen
class Inner:
    rate_hz: float = option(1.0, "a rate", minimum=0.0, maximum=10.0)
    order: int = option(4, "an order", minimum=1)
    names: tuple[str, ...] = option((), "some names", choices=("a", "b"))


@attrs.frozen
class Outer:
    inner: Inner = section(Inner)
    highest: Mapping[str, float] = named(float, "a value", "highest_names")


def test_values_are_taken_and_the_rest_keeps_its_default():
    made = structure(Inner, {"rate_hz": 3, "names": ["a", "b"]})
    assert made == Inner(3.0, 4, ("a", "b")) and isinstance(made.rate_hz, float)
    assert structure(Outer, {}) == Outer()


def test_dotted_keys_stand_for_nested_ones():
    assert structure(Outer, {"inner.order": 2, "inner": {"rate_hz": 3.0}}) == Outer(Inner(3.0, 2))
    for values in ({"highest": {"link.m": 1.0}}, {"highest": {"link": {"m": 1.0}}}, {"highest.link.m": 1.0}):
        assert structure(Outer, values).highest == {"link.m": 1.0}


def test_an_instance_comes_back_from_its_plain_values():
    robot = RobotOptions(locked_joints={"finger": 0.02}, plates={"left": PlateOptions("left_foot", (0.0, 0.1, 0.0))},
        couplings={"wrist": CouplingOptions(("a", "b"), (1.0, -0.5))})
    assert structure(RobotOptions, attrs.asdict(robot)) == robot


@pytest.mark.parametrize(
    "values, message",
    [
        ({"rate": 1.0}, "^file: rate is not an option; did you mean rate_hz"),
        ({"zzz": 1.0}, "^file: zzz is not an option; choose from rate_hz, order, names"),
        ({"rate_hz": "1"}, "^file: rate_hz is '1', expected a number"),
        ({"rate_hz": True}, "^file: rate_hz is True, expected a number"),
        ({"rate_hz": None}, "^file: rate_hz is None, expected a number"),
        ({"rate_hz": -1.0}, "^file: rate_hz is -1.0; it must lie between 0 and 10"),
        ({"rate_hz": float("nan")}, "^file: rate_hz is nan; it must lie between 0 and 10"),
        ({"rate_hz": float("inf")}, "^file: rate_hz is inf; it must lie"),
        ({"rate_hz": {"a": 1}}, "^file: rate_hz is {'a': 1}, expected a number"),
        ({"order": 1.5}, "^file: order is 1.5, expected a whole number"),
        ({"order": 0}, "^file: order is 0; it must lie at or above 1"),
        ({"names": "a"}, "^file: names is 'a', expected a list of text"),
        ({"names": ["c"]}, "^file: names is 'c'; choose from a, b"),
        ({"names": [1]}, "^file: names is 1, expected text"),
    ],
)
def test_bad_values_are_one_line_with_file_key_and_what_is_allowed(values, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        structure(Inner, values, "file")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "tree, values, message",
    [
        (Outer, {"inner": 5}, "^file: inner is 5, expected a mapping of rate_hz, order, names"),
        (Outer, {"inner": {"rate": 5}}, "^file: inner.rate is not an option; did you mean rate_hz"),
        (Outer, {"highest": {"a": "x"}}, "^file: highest.a is 'x', expected a number"),
        (Outer, {"inner": 5, "inner.order": 2}, "^file: inner is given as a value and as a mapping"),
        (RobotOptions, {"plates": {"left": {}}}, "^file: plates.left.frame is missing; give: frame of the robot"),
        (RobotOptions, {"plates": {"left": "foot"}}, "^file: plates.left is 'foot', expected a mapping with frame"),
        (RobotOptions, {"plates": {"left": {"frame": "a", "xyz": [0]}}}, "^file: plates.left.xyz has 1 values; give 3"),
        (RobotOptions, {"plates": {"left": {"frame": "a", "mass": 1}}}, "^file: plates.left.mass is not an option"),
        (RobotOptions, {"plates": 3}, "^file: plates is 3, expected a mapping of names, each with frame"),
        (RobotOptions, {"couplings": {"w": {"joints": ["a"], "ratios": [1]}}}, "couplings.w.joints is .*two or more"),
        (RobotOptions, {"wheels": {"w": None}}, "^file: wheels need a floating robot; set base to free"),
        (
            RobotOptions,
            {"rotors": {"r": {"joint": "a", "link": "b", "ratio": 5, "mass": 1}}},
            "^file: rotors.r.inertia is given twice or not at all",
        ),
        (RecordingTopics, {"odometry": "/o", "pose": "/p"}, "^file: odometry and pose both give the pose"),
    ],
)
def test_bad_elements_are_named(tree, values, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        structure(tree, values, "file")
    assert "\n" not in str(caught.value)


def test_lists_of_names_and_elements_agree():
    plates = {"plate_names": ["left"], "plates": {"left": {"frame": "a"}}}
    assert set(structure(RobotOptions, plates, listed=True).plates) == {"left"}
    flat = {"plate_names": ["left.1"], "plates.left.1.frame": "a", "plates.left.1.xyz": [0.0, 0.0, 1.0]}
    assert structure(RobotOptions, flat, listed=True).plates == {"left.1": PlateOptions("a", (0.0, 0.0, 1.0))}
    topics = {"wrench_names": ["w"], "wrenches.w.topic": "/w"}
    assert structure(RecordingTopics, topics, listed=True).wrenches == {"w": WrenchTopic("/w")}
    assert structure(RobotOptions, {"base": "free", "wheel_names": ["w"]}, listed=True).wheels.keys() == {"w"}
    assert structure(RobotOptions, {"plate_names": [""]}, listed=True).plates == {}
    for names in ({}, {"locked_joint_names": []}, {"locked_joint_names": [""]}, {"locked_joint_names": ["a", "b"]}):
        locked = structure(RobotOptions, {**names, "locked_joints": {"a": 0.0, "b": 0}}, listed=True).locked_joints
        assert locked == {"a": 0.0, "b": 0.0}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"plates": {"left": {"frame": "a"}}}, "plates.left is given, but plate_names does not list it"),
        ({"plate_names": ["left"]}, "plates.left.frame is missing"),
        ({"locked_joint_names": ["a"]}, "locked_joint_names lists a, but locked_joints.a is missing"),
        ({"locked_joint_names": ["a"], "locked_joints": {"a": 0.0, "b": 0.0}},
            "locked_joints.b is given, but locked_joint_names does not list it"),
        ({"locked_joint_names": "a"}, "locked_joint_names is 'a', expected a list of text"),
    ],
)
def test_lists_of_names_and_elements_that_do_not_agree(values, message):
    with pytest.raises(ConfigurationError, match=message):
        structure(RobotOptions, values, listed=True)
