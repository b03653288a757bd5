"""Results and planned motions as HTML pages that need no other file."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from inertid_ros.excitation.inspection import Inspection
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.identifiability import VERDICTS
from inertid_ros.identification.outcome import IdentificationOutcome

from .plots import limits_plot, measurement_plot, spectrum_plot

MOTION_PAGE = "excitation.html"


def render_page(report: Mapping[str, Any], outcome: IdentificationOutcome | None = None) -> str:
    """HTML of a report.

    Parameters
    ----------
    report : mapping
        Content of ``report.json``.
    outcome : IdentificationOutcome, optional
        Where it is given, torque is plotted on the first held-out recording, else on the first fitted one.
    """
    plot, plotted = _plot(outcome) if outcome is not None else ("", "")
    return _rendered("page.html.j2", report=report, plot=plot, plotted=plotted)


def _plot(outcome: IdentificationOutcome) -> tuple[str, str]:
    samples = (outcome.held_out or outcome.train)[0]
    estimate: Estimate = outcome.estimate
    prior = estimate.equations.predict(estimate.prior, samples)
    return measurement_plot(estimate.equations, samples, estimate.torque(samples), prior), samples.name


def _identifiability(verdicts: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """For each body or joint the names of its parameters by verdict, best identified first."""
    owners: dict[str, list[list[str]]] = {}
    for parameter in verdicts:
        owner, _, name = parameter["parameter"].rpartition(".")
        owners.setdefault(owner, [[] for _ in VERDICTS])[-1 - VERDICTS.index(parameter["verdict"])].append(name)
    return list(owners.items())


def _rendered(template: str, **content: Any) -> str:
    from jinja2 import Environment, StrictUndefined

    text = (resources.files(__package__) / template).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": _number, "identifiability": _identifiability}
    return environment.from_string(text).render(**content)


def _number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits."""
    return "–" if value is None else f"{value:.{digits}g}"


def motion_files(inspection: Inspection, summary: Mapping[str, Any]) -> dict[str, bytes]:
    """Names and contents of the page and the plots; without Matplotlib there are no plots.

    Parameters
    ----------
    inspection : Inspection
        The plan and its properties.
    summary : mapping
        Content of ``excitation.json``.
    """
    spectrum = spectrum_plot(inspection.spectrum_before, inspection.spectrum)
    plots = {"motion": limits_plot(inspection), "spectrum": spectrum}
    page = _rendered("motion_page.html.j2", summary=summary, **plots)
    return {MOTION_PAGE: page.encode(), **{f"{name}.svg": plot.encode() for name, plot in plots.items() if plot}}
