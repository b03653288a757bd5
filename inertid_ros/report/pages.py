"""Results and planned motions as self-contained HTML pages with plots."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.data.screening.recording_health import EffortSpectrum
from inertid_ros.identification.assessment.curves import FrictionCurve, PredictionCurves
from inertid_ros.identification.assessment.estimate import COMBINED, IDENTIFIED, NORMAL_95, PARTLY, PRIOR, VERDICTS
from inertid_ros.report.drawing import COLOURS, Drawing, Panel, number, range_of, standalone, svg
from inertid_ros.report.report_content import ERROR_SECTIONS, Curves, prior_label, section_of_errors

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from inertid_ros.excitation.planning.inspection import Inspection

# Sizes of plots, in points.
_PREDICTION_SIZE, _CURVE_SIZE, _ELLIPSOID_SIZE = (360.0, 200.0), (360.0, 190.0), (360.0, 300.0)
_MOTION_SIZE, _SPECTRUM_SIZE = (360.0, 330.0), (720.0, 260.0)
_BAND_DEVIATIONS = 3.0
_BAND_STEP_SAMPLES = 4  # stride of the band: the expected deviation changes slowly
_RESIDUAL_RANGE = 1.6  # times the band or the usual residual; larger residuals are drawn along the border
_VIEWS = {"from the side": (0, 2), "from the front": (1, 2)}  # visible axes of the root frame
_ELLIPSOID_MARGIN = 1.08
_MOTION_POINTS = 300  # per curve, about the resolution of a page
_MIN_SINGULAR_VALUE = 1e-12  # smaller values are drawn at this value
# Identifiability of a parameter, mapped to its word in tables and its CSS class.
_DETERMINED = {IDENTIFIED: ("measured", "measured"), COMBINED: ("in combination", "measured"),
    PARTLY: ("partly", "partly"), PRIOR: ("from prior", "prior")}
_CHANNEL_FAULTS = ("not_finite", "spikes", "held", "saturated")
MOTION_PAGE = "excitation.html"


def prediction_plots(curves: PredictionCurves, channels: list[str], unit: str) -> list[tuple[str, str]]:
    """Name and SVG plot of every measured channel of a recording."""
    return [(name, _channel(curves, index, f"{name} along {curves.name}: measured, predicted and residual", unit))
        for index, name in enumerate(channels) if np.isfinite(curves.measured[:, index]).any()]


def _channel(curves: PredictionCurves, index: int, label: str, unit: str) -> str:
    time = curves.time
    measured, given, calibrated, deviation = (curve[:, index]
        for curve in (curves.measured, curves.given, curves.calibrated, curves.deviation))
    residual = measured - calibrated

    def draw(figure: "Figure") -> None:
        span = range_of(time)
        upper = Panel(figure, (0.13, 0.50, 0.85, 0.41), span, range_of(measured, given, calibrated))
        upper.ticks(y_label=f"measured and predicted [{unit}]", x_numbers=False)
        upper.line(time, given, "given", 0.9)
        upper.line(time, measured, "measured", 1.2)
        upper.line(time, calibrated, "calibrated", 0.9)
        usual = float(np.nanquantile(np.abs(residual), 0.99))
        half = _RESIDUAL_RANGE * max(usual, _BAND_DEVIATIONS * float(deviation.max()))
        lower = Panel(figure, (0.13, 0.155, 0.85, 0.235), span, (-half, half))
        few = slice(None, None, _BAND_STEP_SAMPLES)
        lower.band(time[few], -_BAND_DEVIATIONS * deviation[few], _BAND_DEVIATIONS * deviation[few])
        lower.ticks("time [s]", f"residual, ±3σ [{unit}]")
        lower.line(time, residual, "calibrated", 0.7)

    return svg(*_PREDICTION_SIZE, label, draw)


def friction_plot(curve: FrictionCurve) -> str:
    """SVG plot of one joint: samples, estimated friction curve, and 95 % band."""

    def draw(figure: "Figure") -> None:
        low, high = curve.friction - NORMAL_95 * curve.deviation, curve.friction + NORMAL_95 * curve.deviation
        panel = Panel(figure, (0.13, 0.17, 0.85, 0.72), range_of(curve.speeds), range_of(low, high, curve.torque))
        panel.band(curve.speeds, low, high)
        panel.ticks("velocity [1/s]", "friction and residual [N m or N]")
        panel.points(curve.velocity, curve.torque, "faint")
        panel.line(curve.speeds, curve.friction, "calibrated", 1.4)

    return svg(*_CURVE_SIZE, f"Friction of {curve.joint} over its velocity, with samples", draw)


def effort_spectrum_plot(spectrum: EffortSpectrum) -> str:
    """SVG plot of effort spectra, a line per joint, with the cutoff; the line of the strongest joint is highlighted."""
    positive = np.where(spectrum.density > 0, spectrum.density, np.nan)

    def draw(figure: "Figure") -> None:
        x = float(spectrum.frequency[0]), float(spectrum.frequency[-1])
        y = float(np.nanmin(positive)), float(np.nanmax(positive))
        panel = Panel(figure, (0.15, 0.17, 0.83, 0.72), x, (max(y[0], 1e-7 * y[1]), y[1]), (True, True))
        panel.ticks("frequency [Hz]", "effort density [N m/√Hz]")
        strongest = int(np.nanargmax(np.nansum(positive, axis=0)))
        for joint, density in enumerate(positive.T):
            if np.isfinite(density).any():
                panel.line(spectrum.frequency, density, "calibrated" if joint == strongest else "faint", 0.8)
        if x[0] < spectrum.cutoff_hz < x[1]:
            panel.line(np.full(2, spectrum.cutoff_hz), np.array(panel.y), "limit", 1.2, "--")

    return svg(*_CURVE_SIZE, f"Spectrum of the efforts of {spectrum.name}, cutoff at {spectrum.cutoff_hz:.3g} Hz", draw)


def ellipsoid_plots(ellipsoids: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Name and SVG plot of every view of the ellipsoids of inertia, from the field ``ellipsoids`` of report.json."""
    if not any(body[which] for body in ellipsoids for which in ("given", "calibrated")):
        return []
    centre, half = _extent(ellipsoids)
    return [(f"seen {view}", _view(ellipsoids, f"Ellipsoids of inertia seen {view}", list(axes), centre, half))
        for view, axes in _VIEWS.items()]


def _extent(ellipsoids: Sequence[Mapping[str, Any]]) -> tuple[Array, float]:
    """Centre ``(3,)`` and half the width of the drawing [m]."""
    low, high = [], []
    for body in ellipsoids:
        for ellipsoid in (body["given"], body["calibrated"]):
            if ellipsoid:
                size = np.sqrt(np.sum(np.square(ellipsoid["axes"]), axis=1))
                low.append(np.array(ellipsoid["centre"]) - size)
                high.append(np.array(ellipsoid["centre"]) + size)
    lowest, highest = np.min(low, axis=0), np.max(high, axis=0)
    return 0.5 * (lowest + highest), 0.5 * _ELLIPSOID_MARGIN * float((highest - lowest).max())


def _view(ellipsoids: Sequence[Mapping[str, Any]], label: str, axes: list[int], centre: Array, half: float) -> str:
    from matplotlib.lines import Line2D

    def draw(figure: "Figure") -> None:
        wide = half * _ELLIPSOID_SIZE[0] / _ELLIPSOID_SIZE[1]
        horizontal, vertical = centre[axes]
        panel = Panel(figure, (0.0, 0.0, 1.0, 1.0), (horizontal - wide, horizontal + wide),
            (vertical - half, vertical + half))
        for body in ellipsoids:
            origin = np.array(body["origin"])[axes]
            parent = ellipsoids[body["parent"]]["origin"] if body["parent"] >= 0 else (0.0, 0.0, 0.0)
            x, y = zip(np.array(parent)[axes], origin, strict=True)
            panel.add(Line2D(x, y, color=COLOURS["faint"], linewidth=1.0))
        for body in ellipsoids:
            if body["given"]:
                _outline(panel, body["given"], axes, "given", "--")
            if body["calibrated"]:
                _outline(panel, body["calibrated"], axes, "band", "-", np.array(body["axes_interval"])[:, 1])
                _outline(panel, body["calibrated"], axes, "calibrated", "-")

    return svg(*_ELLIPSOID_SIZE, label, draw)


def _outline(panel: Panel, ellipsoid: Mapping[str, Any], axes: list[int], colour: str, style: str,
        factor: Array | float = 1.0) -> None:
    """Draw the outline of an ellipsoid with scaled semi-axes, projected along an axis of the root frame."""
    from matplotlib.patches import Ellipse

    semi_axes = (np.array(ellipsoid["axes"]) * factor)[axes]
    values, vectors = np.linalg.eigh(semi_axes @ semi_axes.T)
    width, height = (2 * np.sqrt(np.maximum(values, 0.0))).tolist()
    x, y = np.array(ellipsoid["centre"])[axes].tolist()
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    panel.add(Ellipse((x, y), width, height, angle=angle, fill=False, edgecolor=COLOURS[colour], linewidth=1.1,
        linestyle=style))


def limits_plots(inspection: "Inspection") -> list[tuple[str, str]]:
    """Name and SVG plot of every joint: position, velocity, acceleration and prior effort with their limits."""
    plan, limits = inspection.plan, inspection.limits
    time = np.linspace(0.0, plan.duration, _MOTION_POINTS)
    position, velocity, acceleration = plan.sample(time)
    curves = (
        ("position [rad or m]", time, position, limits.lower, limits.upper),
        ("velocity [1/s]", time, velocity, -limits.velocity, limits.velocity),
        ("acceleration [1/s²]", time, acceleration, -limits.acceleration, limits.acceleration),
        ("effort by the prior [N m or N]", plan.time, inspection.effort, -limits.effort, limits.effort))

    def drawn(joint: int, name: str) -> str:
        def draw(figure: "Figure") -> None:
            for row, (title, at, values, lower, upper) in enumerate(curves):
                bounds, last = np.array([lower[joint], upper[joint]]), row == len(curves) - 1
                box = (0.15, 0.79 - 0.235 * row, 0.83, 0.16)
                panel = Panel(figure, box, (0.0, plan.duration), range_of(values[:, joint], bounds))
                panel.ticks("time [s]" if last else "", title, x_numbers=last)
                for bound in bounds[np.isfinite(bounds)]:
                    panel.line(np.array(panel.x), np.full(2, bound), "limit", 0.9, "--")
                panel.line(at, values[:, joint], "calibrated", 0.9)

        return svg(*_MOTION_SIZE, f"Motion of {name} against its limits", draw)

    return [(name, drawn(joint, name)) for joint, name in enumerate(plan.joint_names)]


def spectrum_plot(before: Array | None, after: Array) -> str:
    """SVG plot of the singular values ``(r,)`` of the base regressor before and after the motion.

    ``before`` has the values of earlier recordings alone, if there are any; ``after`` includes the motion.
    """
    index: Array = 1.0 + np.arange(len(after), dtype=float)
    shown: list[Array] = [np.maximum(values, _MIN_SINGULAR_VALUE) for values in (after, before) if values is not None]

    def draw(figure: "Figure") -> None:
        low, high = min(float(values.min()) for values in shown), max(float(values.max()) for values in shown)
        panel = Panel(figure, (0.08, 0.15, 0.9, 0.75), (0.5, len(after) + 0.5), (0.7 * low, 1.4 * high), (False, True))
        panel.ticks("direction in the base parameters", "singular value")
        if before is not None:
            panel.points(index, shown[1], "given", 6.0)
        panel.points(index, shown[0], "calibrated", 4.0)

    return svg(*_SPECTRUM_SIZE, "Singular values of the base regressor, the largest first", draw)


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
        "drawn_ellipsoids": _drawn_ellipsoids}
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
        ellipsoid_drawings=ellipsoid_plots(report.get("ellipsoids", [])),
        prediction_drawings=predictions,
        friction_drawings=[(curve.joint, friction_plot(curve)) for curve in curves.friction],
        spectrum_drawings=[(spectrum.name, effort_spectrum_plot(spectrum)) for spectrum in curves.spectra])


def _predictions(report: Mapping[str, Any], curves: Curves) -> list[tuple[str, list[tuple[str, str]]]]:
    channels = list(report.get("channels", report["joint_names"]))
    unit = report["train"].get("unit", "N m or N")
    return [(lines.name, prediction_plots(lines, channels, unit)) for lines in curves.predictions]


def plots(report: Mapping[str, Any], curves: Curves) -> Drawing:
    """Draw measured and predicted torque of every channel, and friction of every joint."""
    predictions = [drawing for _, drawings in _predictions(report, curves) for _, drawing in drawings]
    return standalone([*predictions, *map(friction_plot, curves.friction)])


def motion_files(motions: Sequence[tuple[str, "Inspection", Mapping[str, Any]]]) -> dict[str, bytes]:
    """File names and contents: one page for all motions, and the plots of the first motion.

    Each entry of ``motions`` has the purpose, the inspected plan, and the content of ``excitation.json``.
    """
    parts = [(purpose, summary, limits_plots(motion),
        spectrum_plot(motion.spectrum_before, motion.spectrum)) for purpose, motion, summary in motions]
    (_, _, limits, spectrum), *_ = parts
    return {MOTION_PAGE: rendered("motion.html.j2", parts=parts).encode(),
        "motion.svg": standalone([drawing for _, drawing in limits]).encode(),
        "spectrum.svg": standalone([spectrum]).encode()}
