"""Options that have an effect under a condition on other options only: given without it, they are refused.

A value that is the default says nothing about what somebody wants, whether it was written down or not.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, Option
from .structuring import flow

GIVEN: Literal["given"] = "given"
ABSENT: Literal["absent"] = "absent"
Wanted = tuple[Any, ...] | range | Literal["given", "absent"]
"""Values of another option, one of which it must have or hold, all from one on as a range; or that it must differ from
its default, or not. Without any value, the other option is what counts instead."""


@attrs.frozen
class Effect:
    """Options, and the conditions of which one at least must hold where they are given.

    Attributes
    ----------
    options : tuple of str
        Keys of options or of sections.
    needs : mapping of str to Wanted
        Key of another option, section or mapping of named elements to what it must be.
    """

    options: tuple[str, ...]
    needs: Mapping[str, Wanted]


def only(options: str, needs: Mapping[str, Wanted]) -> Effect:
    """Make an Effect of keys with blanks between them."""
    return Effect(tuple(options.split()), needs)


def check_effects(effects: Iterable[Effect], values: Mapping[str, Any], known: Iterable[Option], where: str) -> None:
    """Refuse options that are given and have no effect beside the others.

    Parameters
    ----------
    effects : iterable of Effect
        Those about options that are not known here are left alone.
    values : mapping of str to object
        Dotted key to value.
    known : iterable of Option
        All options that the values belong to.
    where : str
        File or node, for messages.

    Raises
    ------
    ConfigurationError
        Names the option without effect and the other one.
    """
    settings = _Settings(values, {entry.key: entry.default for entry in known})
    for effect in effects:
        needs = {key: wanted for key, wanted in effect.needs.items() if settings.has(key)}
        if not needs or any(settings.holds(key, wanted) for key, wanted in needs.items()):
            continue
        for option in effect.options:
            for key in settings.given(option):
                state = " and ".join(settings.state(other, wanted) for other, wanted in needs.items())
                remedy = " or ".join(_remedy(other, wanted) for other, wanted in needs.items())
                raise ConfigurationError(
                    f"{where}: {key} is {_text(values[key])}, which has no effect while {state}; {remedy}, or leave"
                    f" {key} out"
                )


class _Settings:
    """Values beside their defaults."""

    def __init__(self, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self._values, self._defaults = values, defaults

    def has(self, key: str) -> bool:
        return any(f"{known}.".startswith(f"{key}.") for known in self._defaults)

    def given(self, key: str) -> list[str]:
        """Keys at or below a key whose value is not the default."""
        below = {name: _plain(self._values[name]) for name in self._values if f"{name}.".startswith(f"{key}.")}
        return [name for name, value in below.items() if value != _plain(self._defaults.get(name, REQUIRED))]

    def holds(self, key: str, wanted: Wanted) -> bool:
        if isinstance(wanted, str):
            return bool(self.given(key)) == (wanted == GIVEN)
        value = _plain(self._values.get(key, self._defaults[key]))
        return any(each in wanted for each in (value if isinstance(value, tuple) else (value,)))

    def state(self, key: str, wanted: Wanted) -> str:
        if wanted == GIVEN and key not in self._values:
            return f"{key} is not given"
        name = key if key in self._values else self.given(key)[0]
        return f"{name} is {_text(self._values[name])}"


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    return flow(list(value) if isinstance(value, tuple) else value)


def _remedy(key: str, wanted: Wanted) -> str:
    if isinstance(wanted, str):
        return f"give {key}" if wanted == GIVEN else f"leave {key} out"
    if not wanted:
        return f"set {key} instead"
    if isinstance(wanted, range):
        return f"set {key} to {wanted.start} or more"
    return f"set {key} to {' or '.join(_text(value) for value in wanted)}"
