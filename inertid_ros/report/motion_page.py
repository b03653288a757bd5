"""A planned motion as files for people: one HTML page that needs no other file, and its plots as SVG."""

from collections.abc import Mapping
from importlib import resources
from typing import Any

from inertid_ros.excitation.inspection import Inspection

from .motion_plots import limits_plot, spectrum_plot
from .result_page import number

PAGE = "excitation.html"


def motion_files(inspection: Inspection, summary: Mapping[str, Any]) -> dict[str, bytes]:
    """Names and contents of the page and the plots; without Matplotlib there are no plots.

    Parameters
    ----------
    inspection : Inspection
        The plan and its properties.
    summary : mapping
        Content of ``excitation.json``.
    """
    from jinja2 import Environment, StrictUndefined

    spectrum = spectrum_plot(inspection.spectrum_before, inspection.spectrum)
    plots = {"motion": limits_plot(inspection), "spectrum": spectrum}
    template = (resources.files(__package__) / "motion_page.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    page = environment.from_string(template).render(summary=summary, **plots)
    return {PAGE: page.encode(), **{f"{name}.svg": plot.encode() for name, plot in plots.items() if plot}}
