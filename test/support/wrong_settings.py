"""Settings that must not be ignored: keys with a slip, and options without effect beside others."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from inertid_ros.config.configuration import GIVEN, Configuration, Effect, ExcitationConfiguration
from inertid_ros.config.option_fields import REQUIRED, Option, options

TREES = (Configuration, ExcitationConfiguration)
OF_COMMANDS = {entry.key: entry for tree in TREES for entry in options(tree) if not entry.lists}
NAME = "some_name"
# What single values do not allow: bounds that depend on others, elements with several fields.
VALUES: dict[str, Any] = {
    "prepare.wrenches.contact_on_n": 30.0,
    "prepare.wrenches.contact_off_n": 5.0,
    "excitation.collision.obstacles": {"shape": "sphere", "radius": 0.1},
    "robot.plates": {"frame": "foot"},
    "robot.contacts": {"frame": "wrist"},
    "robot.terms": {"joint": "elbow", "shape": "spring"},
    "robot.couplings": {"joints": ["a", "b"], "ratios": [1.0, 2.0]},
    "topics.wrenches": {"topic": "/wrench"},
    "wrenches": {"topic": "/wrench"},
    "excitation.balance.support": {"x": [0.0, 1.0, 1.0], "y": [0.0, 0.0, 1.0]},
    "excitation.balance.com_region": {"x": [0.0, 1.0, 1.0], "y": [0.0, 0.0, 1.0]},
    "contact_on_n": 30.0,
    "contact_off_n": 5.0,
    "fault.gap_s": [0.02, 0.03, 0.04],
}


def misspelt(key: str, rng: random.Random) -> str:
    """The key with a slip of the finger in one of its parts, but in no name that is free."""
    parts = key.split(".")
    at = rng.choice([i for i, part in enumerate(parts) if part != "<name>"])
    text, place = parts[at], rng.randrange(len(parts[at]))
    letter = rng.choice("aeiourstlnm_")
    parts[at] = {
        0: text[:place] + text[place + 1 :],
        1: text[:place] + letter + text[place:],
        2: text[:place] + letter + text[place + 1 :],
        3: text[: place - 1] + text[place] + text[place - 1] + text[place + 1 :] if place else text[1:],
    }[rng.randrange(4)]
    return ".".join(NAME if part == "<name>" else part for part in parts)


def other_value(entry: Option, rng: random.Random) -> Any:
    """A value that an option allows and that is not its default."""
    if entry.is_list:
        count = entry.length or 1
        one = Option("", entry.scalar, False, REQUIRED, "", entry.minimum, entry.maximum, entry.choices)
        values = [other_value(one, rng) for _ in range(count)]
        return values if tuple(values) != entry.default else [*values, other_value(one, rng)]
    if entry.choices:
        return rng.choice([choice for choice in entry.choices if choice not in (entry.default, "")])
    if entry.scalar is bool:
        return not entry.default
    if entry.scalar is str:
        return "something"
    low = entry.minimum if entry.minimum is not None else 0
    high = min(entry.maximum if entry.maximum is not None else low + 10, low + 10)
    value = low + (high - low) * rng.uniform(0.3, 0.7)
    value = entry.scalar(round(value, 6))
    return value if value != entry.default else entry.scalar(high)


def setting(key: str, known: Mapping[str, Option], rng: random.Random) -> dict[str, Any]:
    """Keys at or below a key of options to values that are no defaults."""
    if key in known:
        return {key: VALUES[key] if key in VALUES else other_value(known[key], rng)}
    if key in VALUES:
        named = any(other.startswith(f"{key}.<name>") for other in known)
        return {f"{key}.{NAME}.{field}" if named else f"{key}.{field}": value for field, value in VALUES[key].items()}
    below = [other for other in known if other.startswith(f"{key}.")]
    chosen = rng.choice([other for other in below if other.count("<name>") == 0] or below)
    group = next((other for other in VALUES if chosen.startswith(f"{other}.")), chosen)
    if group != chosen:
        return setting(group, known, rng)
    return {chosen.replace("<name>", NAME): VALUES.get(chosen, other_value(known[chosen], rng))}


def without_effect(effect: Effect, option: str, known: Mapping[str, Option], rng: random.Random) -> dict[str, Any]:
    """Settings of which one has no effect beside the others."""
    values = setting(option, {key: entry for key, entry in known.items() if key not in effect.needs}, rng)
    for key, wanted in effect.needs.items():
        if wanted in (GIVEN, ()):
            continue  # and it is not, or nothing helps
        if isinstance(wanted, str):
            values |= setting(key, known, rng)
        elif isinstance(wanted, range):
            values[key] = wanted.start - 1
        elif key in known:
            entry = known[key]
            others = [choice for choice in entry.choices or (True, False) if choice not in wanted]
            values[key] = [rng.choice(others)] if entry.is_list else rng.choice(others)
    return values


def applies(effect: Effect, option: str, known: Mapping[str, Option]) -> bool:
    """Whether the options of an effect are among those known."""

    def has(key: str) -> bool:
        return any(f"{other}.".startswith(f"{key}.") for other in known)

    return has(option) and any(map(has, effect.needs))


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings of dotted keys."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".")
        inner = out
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return out


def named_both(message: str, option: str, effects: Sequence[Effect]) -> bool:
    """Whether a message names an option without effect, and one of those that its effect depends on."""
    about = [effect for effect in effects if any(f"{option}.".startswith(f"{own}.") for own in effect.options)]
    others = [key for effect in about for key in effect.needs]
    about_both = any(f" {key} is " in message or f" {key}." in message for key in others)
    return f" {option} is " in f" {message}" and about_both
