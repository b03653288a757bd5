"""The report as one HTML page that needs no other file."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.identifiability import VERDICTS
from inertid_ros.identification.outcome import IdentificationOutcome

from .torque_plot import torque_plot


def render_page(report: Mapping[str, Any], outcome: IdentificationOutcome | None = None) -> str:
    """HTML of a report.

    Parameters
    ----------
    report : mapping
        Content of ``report.json``.
    outcome : Outcome, optional
        Where it is given, torque is plotted on the first held-out recording, else on the first fitted one.
    """
    from jinja2 import Environment, StrictUndefined

    template = (resources.files(__package__) / "page.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    environment.filters["identifiability"] = _identifiability
    plot, plotted = _plot(outcome) if outcome is not None else ("", "")
    return environment.from_string(template).render(report=report, plot=plot, plotted=plotted)


def _plot(outcome: IdentificationOutcome) -> tuple[str, str]:
    samples = (outcome.held_out or outcome.train)[0]
    estimate: Estimate = outcome.estimate
    prior = estimate.equations.predict(estimate.prior, samples)
    return torque_plot(estimate.equations.channels, samples, estimate.torque(samples), prior), samples.name


def _identifiability(statements: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """For each body or joint the names of its parameters by verdict, best identified first."""
    owners: dict[str, list[list[str]]] = {}
    for parameter in statements:
        owner, _, name = parameter["parameter"].rpartition(".")
        owners.setdefault(owner, [[] for _ in VERDICTS])[-1 - VERDICTS.index(parameter["verdict"])].append(name)
    return list(owners.items())


def number(value: float | None, digits: int = 4) -> str:
    """A number for pages, with so many significant digits."""
    return "–" if value is None else f"{value:.{digits}g}"
