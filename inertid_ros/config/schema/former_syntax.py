"""Lists of strings as configurations had them until 0.1, such as ``left=frame:left_foot``, to the mappings of now.

They are not accepted any more; an error shows the new form of what was given.
"""

from collections.abc import Sequence
from typing import Any


def values(texts: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` or ``NAME=LOWEST:HIGHEST`` each."""
    return {name: _value(text.replace(":", " ")) for name, text in map(_split, texts)}


def elements(texts: Sequence[str]) -> dict[str, Any]:
    """``NAME`` or ``NAME=FIELD:VALUE,FIELD:VALUE`` each; numbers of a vector part at blanks."""
    return {
        name: {
            field.strip(): _value(value)
            for field, _, value in (part.partition(":") for part in parts.split(",") if part)
        }
        for name, parts in (_split(text, optional=True) for text in texts)
    }


def couplings(texts: Sequence[str]) -> dict[str, Any]:
    """``NAME=JOINT:RATIO,JOINT:RATIO`` each."""
    found = {}
    for name, text in map(_split, texts):
        parts = [part.split(":") for part in text.split(",")]
        found[name] = {"joints": [joint for joint, _ in parts], "ratios": [_value(ratio) for _, ratio in parts]}
    return found


def contacts(texts: Sequence[str]) -> dict[str, Any]:
    """``NAME=FRAME`` or ``FRAME`` each."""
    return {name: {"frame": frame or name} for name, frame in (_split(text, optional=True) for text in texts)}


def wrench_topics(texts: Sequence[str]) -> dict[str, Any]:
    """``TOPIC=FRAME`` or ``TOPIC`` each; the name is the frame, or the last part of the topic."""
    found = {}
    for topic, frame in (_split(text, optional=True) for text in texts):
        name = frame or topic.strip("/").replace("/", "_")
        found[name] = {"topic": topic} | ({"frame": frame} if frame else {})
    return found


def typed_topics(texts: Sequence[str]) -> dict[str, Any]:
    """``TOPIC=PACKAGE/msg/TYPE`` each; the name is the topic's."""
    return {
        topic.strip("/").replace("/", "_"): {"topic": topic, "type": message_type}
        for topic, message_type in map(_split, texts)
    }


def mirrored(texts: Sequence[str]) -> dict[str, Any]:
    """``LINK=LINK:AXIS`` each."""
    found = {}
    for name, text in map(_split, texts):
        link, axis = text.split(":")
        found[name] = {"link": link, "axis": axis}
    return found


def pairs(texts: Sequence[str]) -> dict[str, Any]:
    """``NAME=NAME`` each, where a name may have several partners."""
    found: dict[str, Any] = {}
    for first, second in map(_split, texts):
        found.setdefault(first, []).append(second)
    return found


def corners(texts: Sequence[str]) -> dict[str, Any]:
    """``X:Y`` each."""
    found = [text.split(":") for text in texts]
    return {"x": [_value(x) for x, _ in found], "y": [_value(y) for _, y in found]}


def _split(text: str, optional: bool = False) -> tuple[str, str]:
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not (value or optional):
        raise ValueError
    return name, value


def _value(text: str) -> Any:
    from inertid_ros.core.formats import read_yaml

    parts = [read_yaml(part) for part in text.split()]
    return parts[0] if len(parts) == 1 else parts
