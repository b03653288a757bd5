"""Random messages and requests of any type, and the topics and services of running nodes."""

import importlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node

from .values import NAMES

_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 10.0, 1e-320, 1e38, -1e38, float("nan"), float("inf"), float("-inf"))
_SEQUENCE = re.compile(r"sequence<(.+?)(?:, (\d+))?>$")
_ARRAY = re.compile(r"(.+)\[(\d+)\]$")
_LENGTHS = (0, 0, 1, 1, 2, 2, 3, 7, 300)
_LONGEST = 20_000  # characters


@dataclass(frozen=True)
class Endpoint:
    """Topic or service of a node, and the class of its messages or of the service."""

    node: str
    name: str
    type: Any
    is_service: bool

    @property
    def content(self) -> type:
        """Class of what is sent."""
        return self.type.Request if self.is_service else self.type


def endpoints(node: Node, names: Sequence[str]) -> Iterator[Endpoint]:
    """All subscriptions and services of these nodes, as the ROS graph has them; services of actions included."""
    for name in names:
        for topic, types in node.get_subscriber_names_and_types_by_node(name, "/"):
            yield Endpoint(name, topic, interface(types[0]), False)
        for service, types in node.get_service_names_and_types_by_node(name, "/"):
            yield Endpoint(name, service, interface(types[0]), True)


def interface(type_name: str) -> Any:
    """Class of a type as the ROS graph names it, such as ``std_srvs/srv/Trigger`` or ``PACKAGE/action/NAME_SendGoal``."""
    package, kind, name = type_name.split("/")
    module = importlib.import_module(f"{package}.{kind}")
    action, _, part = name.rpartition("_")
    if kind != "action" or part not in ("SendGoal", "GetResult"):
        return getattr(module, name)
    return getattr(getattr(module, action).Impl, f"{part}Service")


def random_content(type_: Any, words: Sequence[str], rng: random.Random) -> Any:
    """An instance of a message or request with about half of its fields drawn, strings from ``words``, too."""
    content = type_()
    for field, field_type in type_.get_fields_and_field_types().items():
        if rng.random() < 0.5:
            continue
        present = getattr(content, field)
        if hasattr(present, "get_fields_and_field_types"):
            setattr(content, field, random_content(type(present), words, rng))
        else:
            setattr(content, field, _value(field_type, words, rng))
    return content


def _value(type_name: str, words: Sequence[str], rng: random.Random) -> Any:
    if found := _SEQUENCE.match(type_name):
        length = min(rng.choice(_LENGTHS), int(found[2] or _LONGEST))
        return [_value(found[1], words, rng) for _ in range(length)]
    if found := _ARRAY.match(type_name):
        return [_value(found[1], words, rng) for _ in range(int(found[2]))]
    if "/" in type_name:
        return random_content(_nested(type_name), words, rng)
    if type_name.startswith(("string", "wstring")):
        return rng.choice((*words, *NAMES))[:_LONGEST]
    if type_name == "boolean":
        return rng.random() < 0.5
    if type_name == "octet":
        return bytes([rng.randrange(256)])
    if type_name in ("float", "double"):
        return rng.choice((*_FLOATS, rng.gauss(0.0, 1.0)))
    signed, bits = type_name.startswith("int"), int(type_name.removeprefix("u").removeprefix("int"))
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return rng.choice((least, most, 0, 1, 2, 3, 4, rng.randint(least, most)))


def _nested(type_name: str) -> Any:
    package, name = type_name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)
