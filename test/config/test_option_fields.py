"""Options as data: fields of attrs classes."""

import math
from collections.abc import Mapping

import attrs
import pytest

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.option_fields import REQUIRED, named, option, options, section
from inertid_ros.core.errors import ConfigurationError


@attrs.frozen
class Inner:
    frame: str = option(REQUIRED, "a frame", of=str)
    size: tuple[float, ...] = option((1.0, 2.0), "a size [m]", minimum=0.0, of=tuple[float, float])


@attrs.frozen
class Outer:
    rate_hz: float = option(1.0, "a rate [Hz]", minimum=0.0, maximum=10.0)
    order: int = option(4, "an order", minimum=1)
    names: tuple[str, ...] = option((), "some names", choices=("a", "b"))
    on: bool = option(True, "a switch")
    inners: Mapping[str, Inner] = named(Inner, "some of them", "inner_names")
    speeds: Mapping[str, float] = named(float, "a speed [m/s]", "speed_names", minimum=0.0)


@attrs.frozen
class Whole:
    outer: Outer = section(Outer)


def test_options_are_listed_with_key_type_range_unit_and_description():
    found = {entry.key: entry for entry in options(Whole, "x.")}
    assert list(found) == ["x.outer.rate_hz", "x.outer.order", "x.outer.names", "x.outer.on", "x.outer.inner_names",
        "x.outer.inners.<name>.frame", "x.outer.inners.<name>.size", "x.outer.speed_names", "x.outer.speeds.<name>"]
    rate = found["x.outer.rate_hz"]
    assert (rate.scalar, rate.is_list, rate.default, rate.minimum, rate.maximum) == (float, False, 1.0, 0.0, 10.0)
    assert rate.unit == "Hz" and rate.description == "a rate [Hz]"
    assert found["x.outer.names"].is_list and found["x.outer.names"].scalar is str
    assert found["x.outer.inner_names"].lists == "x.outer.inners"
    frame = found["x.outer.inners.<name>.frame"]
    assert frame.default is REQUIRED and frame.names == "x.outer.inner_names"
    assert frame.of("left").key == "x.outer.inners.left.frame"


@pytest.mark.parametrize(("value", "expected"), [("", ()), ("day", ("day",)), (["a", "b"], ("a", "b"))])
def test_a_list_that_was_a_text_takes_both(value, expected):
    assert Configuration(identify=IdentifyOptions(prior=value)).identify.prior == expected


@pytest.mark.parametrize(
    "values, message",
    [
        ({"rate_hz": -1.0}, "rate_hz is -1.0; it must lie between 0 and 10"),
        ({"rate_hz": math.nan}, "rate_hz is nan; it must lie"),
        ({"rate_hz": True}, "rate_hz is True, expected a number"),
        ({"order": True}, "order is True, expected a whole number"),
        ({"order": 0}, "order is 0; it must lie at or above 1"),
        ({"names": ("c",)}, "names is 'c'; choose from a, b"),
        ({"on": 1}, "on is 1, expected true or false"),
        ({"speeds": {"a": -1}}, "speeds.a is -1.0; it must lie"),
    ],
)
def test_classes_check_their_values_when_they_are_made(values, message):
    with pytest.raises(ConfigurationError, match=message):
        Outer(**values)
    with pytest.raises(ConfigurationError, match="size has 1 values; give 2"):
        Inner("a", (1.0,))


def test_whole_numbers_and_lists_are_converted():
    made = Outer(rate_hz=3, names=["a"], speeds={"a": 1})
    assert isinstance(made.rate_hz, float) and made.names == ("a",) and made.speeds == {"a": 1.0}
    assert attrs.evolve(made, order=5).order == 5


def test_an_option_without_description_is_a_mistake_of_the_programmer():
    @attrs.frozen
    class Bare:
        value: float = 1.0

    with pytest.raises(TypeError, match="Bare.value: has no description"):
        list(options(Bare))


@pytest.mark.parametrize("tree", [Configuration, ExcitationConfiguration])
def test_every_option_has_a_description_and_every_number_a_range(tree):
    for entry in options(tree):
        assert entry.description and not entry.description.endswith("."), entry.key
        assert entry.scalar in (bool, str) or entry.minimum is not None or entry.maximum is not None, entry.key
    tree()  # the defaults are allowed
