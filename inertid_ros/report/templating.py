"""Templates of pages and the filters that they use."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from inertid_ros.identification.assessment.identifiability import COMBINED, IDENTIFIED, PARTLY, PRIOR, VERDICTS

if TYPE_CHECKING:
    from jinja2 import Environment

# What a table says of a parameter, and the class by which it is coloured.
_DETERMINED = {
    IDENTIFIED: ("measured", "measured"),
    COMBINED: ("in combination", "measured"),
    PARTLY: ("partly", "partly"),
    PRIOR: ("from prior", "prior"),
}
_NOTHING = 1e-12  # in SI units, of any quantity of a robot
_FAULTS = ("not_finite", "spikes", "held", "saturated")


def rendered(template: str, **content: Any) -> str:
    """HTML of a template; every text is escaped that the template does not mark as safe."""
    return _environment().get_template(template).render(**content)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": _number,
        "percent": _percent,
        "fraction": _fraction,
        "identifiability": _identifiability,
        "determined": lambda verdict: _DETERMINED.get(verdict, ("", ""))[0],
        "determined_class": lambda verdict: _DETERMINED.get(verdict, ("", ""))[1],
        "groupby_owner": _by_owner,
        "channel_faults": _channel_faults,
        "drawn_ellipsoids": _drawn_ellipsoids,
    }
    return environment


def _source(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits."""
    if value is None or isinstance(value, str) or not np.isfinite(value):
        return "–"
    return f"{0.0 if abs(value) < _NOTHING else value:.{digits}g}".replace("-", "−")


def _fraction(value: float | None) -> str:
    """A number of about one, such as R², whose distance to one matters."""
    return "–" if value is None else f"{value:.4f}".replace("-", "−")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.3g} %"


def _identifiability(verdicts: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """For each body or joint the names of its parameters by verdict, best identified first."""
    owners: dict[str, list[list[str]]] = {}
    for parameter in verdicts:
        owner, _, name = parameter["parameter"].rpartition(".")
        owners.setdefault(owner, [[] for _ in VERDICTS])[-1 - VERDICTS.index(parameter["verdict"])].append(name)
    return list(owners.items())


def _by_owner(changes: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Changes of the URDF by link and joint."""
    owners = groupby(changes, lambda change: f"{change['element']} {change['name']}")
    return [(owner, list(found)) for owner, found in owners]


def _channel_faults(health: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """For each joint with faulty samples the words on every fault, such as ``3 of effort``."""
    rows = []
    for index, joint in enumerate(health["joints"]):
        words = [
            ", ".join(f"{counts[index]} of {channel}" for channel, counts in health[fault].items() if counts[index])
            for fault in _FAULTS
        ]
        if any(words):
            rows.append((joint, words))
    return rows


def _drawn_ellipsoids(ellipsoids: Sequence[Mapping[str, Any]]) -> str:
    """What the script turns, as JSON with short names and few digits, safe within a script element."""

    def short(values: Any) -> Any:
        return [short(each) for each in values] if isinstance(values, list) else float(f"{values:.3g}")

    def placed(each: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if each is None else {"m": short(each["centre"]), "a": short(each["axes"])}

    content = [
        {
            "o": short(each["origin"]),
            "p": each["parent"],
            "g": placed(each["given"]),
            "c": placed(each["calibrated"]),
            "i": short([high for _, high in each["axes_interval"]]),
        }
        for each in ellipsoids
    ]
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
