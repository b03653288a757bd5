"""Results and planned motions as self-contained HTML pages."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from inertid_ros.identification.assessment.estimate import COMBINED, IDENTIFIED, PARTLY, PRIOR, VERDICTS
from inertid_ros.report import plots as drawn
from inertid_ros.report.drawing import Drawing, number, standalone
from inertid_ros.report.report_content import ERROR_SECTIONS, Curves, prior_label, section_of_errors

if TYPE_CHECKING:
    from jinja2 import Environment

    from inertid_ros.excitation.planning.inspection import Inspection

# Identifiability of a parameter, mapped to its word in tables and its CSS class.
_DETERMINED = {IDENTIFIED: ("measured", "measured"), COMBINED: ("in combination", "measured"),
    PARTLY: ("partly", "partly"), PRIOR: ("from prior", "prior")}
_CHANNEL_FAULTS = ("not_finite", "spikes", "held", "saturated")
MOTION_PAGE = "excitation.html"


def rendered(template: str, **content: Any) -> str:
    """HTML of a template; texts are escaped unless the template marks them as safe."""
    return _environment().get_template(template).render(**content)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "number": number,
        "interval": _interval,
        "prior_label": prior_label,
        "deciding": section_of_errors,
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


def _fraction(value: float | None) -> str:
    """Format a number near one, such as R², with four decimals."""
    return "–" if value is None else f"{value:.4f}".replace("-", "−")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.3g} %"


def _interval(low: float, high: float, digits: int = 3) -> str:
    """Format an interval with ``digits`` digits, or with more if its ends would otherwise look equal."""
    enough = (more for more in range(digits, 12) if low == high or number(low, more) != number(high, more))
    digits = next(enough, digits)
    return f"{number(low, digits)} to {number(high, digits)}"


def _identifiability(verdicts: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """Each body or joint with the names of its parameters, grouped by verdict, best identified first."""
    owners: dict[str, list[list[str]]] = {}
    for parameter in verdicts:
        owner, _, name = parameter["parameter"].rpartition(".")
        owners.setdefault(owner, [[] for _ in VERDICTS])[-1 - VERDICTS.index(parameter["verdict"])].append(name)
    return list(owners.items())


def _by_owner(changes: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Changes of the URDF, grouped by link and joint."""
    owners = groupby(changes, lambda change: f"{change['element']} {change['name']}")
    return [(owner, list(group)) for owner, group in owners]


def _channel_faults(health: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Each joint with faulty samples, with one text per kind of fault, such as ``3 of effort``."""
    rows = []
    for index, joint in enumerate(health["joints"]):
        words = [", ".join(f"{counts[index]} of {channel}" for channel, counts in health[fault].items()
            if counts[index]) for fault in _CHANNEL_FAULTS]
        if any(words):
            rows.append((joint, words))
    return rows


def _drawn_ellipsoids(ellipsoids: Sequence[Mapping[str, Any]]) -> str:
    """Ellipsoids for the page's script: JSON with short names and few digits, safe within a script element."""

    def short(values: Any) -> Any:
        return [short(value) for value in values] if isinstance(values, list) else float(f"{values:.3g}")

    def placed(ellipsoid: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if ellipsoid is None else {"m": short(ellipsoid["centre"]), "a": short(ellipsoid["axes"])}

    content = [{"o": short(body["origin"]), "p": body["parent"], "g": placed(body["given"]),
        "c": placed(body["calibrated"]), "i": short([high for _, high in body["axes_interval"]])}
        for body in ellipsoids]
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def render_page(report: Mapping[str, Any], curves: Curves | None = None) -> str:
    """HTML page of ``report.json``; an older report may lack parts. Without curves, the page plots only ellipsoids."""
    curves = curves or Curves()
    predictions = _predictions(report, curves)
    channels = list(report.get("channels", report["joint_names"]))
    largest = channels[int(np.argmax(report[section_of_errors(report)]["rms_torque"]))]
    return rendered("report.html.j2", report=report, data_words=ERROR_SECTIONS,
        first_drawing=[(name, plot) for _, drawings in predictions[:1] for name, plot in drawings if name == largest],
        ellipsoid_drawings=drawn.ellipsoid_plots(report.get("ellipsoids", [])),
        prediction_drawings=predictions,
        friction_drawings=[(curve.joint, drawn.friction_plot(curve)) for curve in curves.friction],
        spectrum_drawings=[(spectrum.name, drawn.effort_spectrum_plot(spectrum)) for spectrum in curves.spectra])


def _predictions(report: Mapping[str, Any], curves: Curves) -> list[tuple[str, list[tuple[str, str]]]]:
    channels = list(report.get("channels", report["joint_names"]))
    unit = report["train"].get("unit", "N m or N")
    return [(lines.name, drawn.prediction_plots(lines, channels, unit)) for lines in curves.predictions]


def plots(report: Mapping[str, Any], curves: Curves) -> Drawing:
    """Draw measured and predicted torque of every channel, and friction of every joint."""
    predictions = [drawing for _, drawings in _predictions(report, curves) for _, drawing in drawings]
    return standalone([*predictions, *map(drawn.friction_plot, curves.friction)])


def motion_files(motions: Sequence[tuple[str, "Inspection", Mapping[str, Any]]]) -> dict[str, bytes]:
    """File names and contents: one page for all motions, and the plots of the first motion.

    Each entry of ``motions`` has the purpose, the inspected plan, and the content of ``excitation.json``.
    """
    parts = [(purpose, summary, drawn.limits_plots(motion),
        drawn.spectrum_plot(motion.spectrum_before, motion.spectrum)) for purpose, motion, summary in motions]
    (_, _, limits, spectrum), *_ = parts
    return {MOTION_PAGE: rendered("motion.html.j2", parts=parts).encode(),
        "motion.svg": standalone([drawing for _, drawing in limits]).encode(),
        "spectrum.svg": standalone([spectrum]).encode()}
