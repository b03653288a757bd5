"""Two results of one robot beside each other."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from inertid_ros.identification.details.result_comparison import ParameterSet, compare_results

from .report_content import plain
from .results import ResultError, StoredResult
from .templating import rendered

_SHOWN = 20  # parameters of a page


def comparison_content(first: StoredResult, second: StoredResult) -> dict[str, Any]:
    """Differences of two results as plain data.

    Raises
    ------
    ResultError
        They are of different robots.
    """
    if first.model.hash != second.model.hash or first.model.link_names != second.model.link_names:
        raise ResultError(
            f"{second.directory}: is of another robot than {first.directory} (their kinematics differ); compare two"
            " results of one robot"
        )
    sets = [ParameterSet(each.model, each.parameters, each.covariance) for each in (first, second)]
    found, outlines = compare_results(*sets), [_outline(each) for each in (first, second)]
    content: dict[str, Any] = plain(
        {
            "robot": first.model.name,
            "results": outlines,
            "same_data": all(outlines[0][key] == outlines[1][key] for key in ("errors_on", "recordings")),
            "links": [
                {"name": name, "mass": [own["mass"], other["mass"]], "com": [own["com"], other["com"]], "distance": far}
                for name, own, other, far in zip(
                    found.links, first.report["links"], second.report["links"], found.distance, strict=True
                )
            ],
            "torque_difference": dict(zip(found.joints, found.torque_difference, strict=True)),
            "parameters": [asdict(change) for change in found.changes],
        }
    )
    return content


def render_comparison(content: Mapping[str, Any]) -> str:
    """HTML page of :func:`comparison_content`."""
    return rendered("comparison.html.j2", comparison=content, shown=_SHOWN)


def _outline(result: StoredResult) -> dict[str, Any]:
    report = result.report
    section = next(name for name in ("validation", "blocks", "train") if name in report)
    return {
        "directory": str(result.directory),
        "verdict": report["verdict"],
        "created": report["provenance"]["created"],
        "errors_on": section,
        "relative_error": report[section]["relative_error"],
        "channels": report["channels"],
        "rms_error": report[section]["rms_error"],
        "recordings": report[section]["recordings"],
    }
