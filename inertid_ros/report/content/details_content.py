"""Links and details of a result as parts of report.json; curves are kept beside it, in curves.npz."""

from dataclasses import asdict
from typing import Any

from inertid_ros.data.health.recording_health import RecordingHealth
from inertid_ros.identification.outcome import IdentificationOutcome
from inertid_ros.robot.bodies.inertial_parameters import mass_com_inertia
from inertid_ros.robot.urdf.changes import urdf_changes


def links_content(outcome: IdentificationOutcome) -> list[dict[str, Any]]:
    """Moving bodies; inertia (3x3) about the centre of mass, ``parameters`` about the joint frame origin."""
    estimate = outcome.estimate
    mass, com, inertia = mass_com_inertia(estimate.bodies)
    prior_mass, prior_com, prior_inertia = mass_com_inertia(estimate.model.body_prior)
    deviations = estimate.layout.bodies(estimate.standard_deviation)
    intervals = estimate.interval[: estimate.layout.body_size].reshape(*deviations.shape, 2)
    return [
        {
            "name": name,
            "mass": mass[i],
            "com": com[i],
            "inertia": inertia[i],
            "parameters": estimate.bodies[i],
            "standard_deviation": deviations[i],
            "interval": intervals[i],
            "min_pseudo_inertia_eigenvalue": estimate.min_eigenvalues[i],
            "geodesic_distance_to_prior": estimate.distance_to_prior[i],
            "prior": {"mass": prior_mass[i], "com": prior_com[i], "inertia": prior_inertia[i]},
            **asdict(outcome.details.bodies[i]),
        }
        for i, name in enumerate(estimate.model.link_names)
    ]


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
