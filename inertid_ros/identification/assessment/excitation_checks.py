"""Checks of what the motion that was fitted left open."""

import numpy as np

from inertid_ros.core.findings import Finding, Severity
from inertid_ros.identification.base_parameters import base_parameters_of_robot

from .estimate import Estimate
from .torque_confidence import TorqueConfidence

_OPEN = 0.5  # of a joint's torque over its range: as much as an error may be before the torque counts as unexplained
_NAMED = 3  # combinations that a message lists


def check_excitation(estimate: Estimate, confidence: TorqueConfidence | None) -> tuple[Finding, ...]:
    """Findings on joints whose torque stays uncertain, and on base parameters that the motion does not show at all.

    Parameters
    ----------
    confidence : TorqueConfidence or None
        Of the estimate; None on a free base.
    """
    findings = []
    remedy = "record a motion that moves these joints more (inertid excite --prior plans one)"
    if confidence is not None:
        for joint, share in zip(confidence.joint_names, confidence.shares, strict=True):
            if share > _OPEN:
                evidence = f"{joint}: its torque over its range is known to {100 * share:.0f} % only"
                findings.append(Finding("little_excited", Severity.CARE, evidence, remedy, (joint,)))
    measured = np.unique(np.concatenate(estimate.equations.columns))
    every = np.intersect1d(base_parameters_of_robot(estimate.model).independent, measured)
    every = every[every < estimate.layout.inertial_size]  # of bodies: friction that a motion does not show is its own
    lost = [estimate.layout.names[column] for column in np.setdiff1d(every, estimate.base.independent)]
    if lost:
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        evidence = (
            f"{len(every) - len(lost)} of the bodies' {len(every)} base parameters show in the motion; not apart from"
            f" others: {', '.join(lost[:_NAMED])}{more}"
        )
        findings.append(Finding("little_excited", Severity.NOTICE, evidence, remedy))
    return tuple(findings)
