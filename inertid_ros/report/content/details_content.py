"""Details of a result as parts of report.json; curves are kept beside it, in curves.npz."""

from dataclasses import asdict
from typing import Any

from inertid_ros.data.health.recording_health import RecordingHealth
from inertid_ros.identification.outcome import IdentificationOutcome
from inertid_ros.robot.urdf.changes import urdf_changes


def details_content(outcome: IdentificationOutcome) -> dict[str, Any]:
    """Next action, ellipsoids, coverage, margins, correlated pairs, changes of the URDF, and health of the data."""
    details, delay = outcome.details, outcome.estimate.delay_found
    return {
        "next_action": asdict(outcome.next_action),
        "ellipsoids": [asdict(each) for each in details.ellipsoids],
        "coverage": [asdict(each) for each in details.coverage],
        "feasibility": [asdict(each) for each in details.feasibility],
        "correlated_pairs": [asdict(each) for each in details.correlated],
        "urdf_changes": [asdict(each) for each in urdf_changes(outcome.estimate.model.urdf, outcome.urdf)],
        "delay": None
        if delay is None
        else {**asdict(delay), "significant": delay.significant, "removed": outcome.estimate.delay},
        "health": [_health(each) for each in outcome.health],
    }


def _health(health: RecordingHealth) -> dict[str, Any]:
    """Figures of a recording; its spectrum is a curve."""
    content = {key: value for key, value in vars(health).items() if key != "spectrum"}
    content["cutoff_hz"] = None if health.spectrum is None else health.spectrum.cutoff_hz
    return content
