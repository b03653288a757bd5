"""Results and planned motions as HTML pages that need no other file."""

from collections.abc import Mapping, Sequence
from typing import Any

from inertid_ros.excitation.inspection import Inspection

from .curves import Curves
from .glossary import GLOSSARY
from .plots.curve_plots import effort_spectrum_plot, friction_plot, prediction_plots
from .plots.ellipsoid_plots import ellipsoid_plots
from .plots.motion_plots import limits_plots, spectrum_plot
from .plots.standalone import standalone
from .templating import rendered

MOTION_PAGE = "excitation.html"
_SECTIONS = (
    ("verdict", "Verdict"),
    ("errors", "Errors"),
    ("ellipsoids", "Ellipsoids of inertia"),
    ("links", "Links"),
    ("predictions", "Measured and predicted"),
    ("friction", "Friction"),
    ("coverage", "What the motion covered"),
    ("feasibility", "Feasibility and correlation"),
    ("urdf", "Changes of the URDF"),
    ("health", "Health of the data"),
    ("provenance", "Provenance"),
    ("glossary", "Glossary"),
)


def render_page(report: Mapping[str, Any], curves: Curves | None = None) -> str:
    """HTML of a report.

    Parameters
    ----------
    report : mapping
        Content of ``report.json``; what an older one does not hold is left out.
    curves : Curves, optional
        What is plotted; without it there are no plots but those of ellipsoids.
    """
    curves = curves or Curves()
    channels = list(report.get("channels", report["joint_names"]))
    unit = report["train"].get("unit", "N m or N")
    return rendered(
        "report.html.j2",
        report=report,
        sections=_SECTIONS,
        glossary=GLOSSARY,
        ellipsoid_drawings=ellipsoid_plots(report.get("ellipsoids", [])),
        prediction_drawings=[(each.name, prediction_plots(each, channels, unit)) for each in curves.predictions],
        friction_drawings=[(each.joint, friction_plot(each)) for each in curves.friction],
        spectrum_drawings=[(each.name, effort_spectrum_plot(each)) for each in curves.spectra],
    )


def render_summary(report: Mapping[str, Any]) -> str:
    """Part of a page for notebooks: verdict, errors and links, without scripts."""
    return rendered("summary.html.j2", report=report)


def motion_files(motions: Sequence[tuple[str, Inspection, Mapping[str, Any]]]) -> dict[str, bytes]:
    """Names and contents of one page for all motions, and of the plots of the first.

    Parameters
    ----------
    motions : sequence of (str, Inspection, mapping)
        What each is for, the plan and its properties, and its content of ``excitation.json``.
    """
    parts = [
        (purpose, summary, limits_plots(inspection), spectrum_plot(inspection.spectrum_before, inspection.spectrum))
        for purpose, inspection, summary in motions
    ]
    page = rendered("motion.html.j2", parts=parts)
    _, _, motion, spectrum = parts[0]
    files = {"motion": standalone([drawing for _, drawing in motion]), "spectrum": standalone([spectrum])}
    return {MOTION_PAGE: page.encode(), **{f"{name}.svg": drawing.encode() for name, drawing in files.items()}}
