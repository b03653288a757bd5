"""Checks of an estimate by itself: consistency, optimality, borders that were set for it, what the motion left open."""


import numpy as np

from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.identification.base_parameters import base_parameters_of_robot
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.robot.bodies.inertial_parameters import is_consistent
from inertid_ros.robot.bodies.layout import ParameterLayout

from .estimate import Estimate
from .torque_confidence import TorqueConfidence

_OPEN = 0.5  # of a joint's torque over its range: what is known no better may be anything between nothing and twice it
_NAMED = 3  # combinations that a message lists
_AT_BORDER = 1e-3  # of the border's own size, or of the width of the interval: interior points end a little inside


def check_solution(estimate: Estimate) -> tuple[Finding, ...]:
    """Findings on consistency and optimality; either makes a result useless."""
    findings = []
    consistent = is_consistent(estimate.layout.all_bodies(estimate.parameters))
    own = estimate.bodies - estimate.model.body_locked
    real = is_consistent(own) | ~own.any(axis=1)  # what a body has beyond the links behind locked joints
    bodies = (*estimate.layout.body_names, *estimate.model.link_names)
    exists = (*consistent, *real)
    names = list(dict.fromkeys(name for name, good in zip(bodies, exists, strict=True) if not good))
    if names:
        findings.append(
            Finding(
                "inconsistent",
                Severity.REJECT,
                f"{_listed(names)}: not physically consistent, no real bodies have these parameters",
                remedy_for("inconsistent"),
                tuple(names),
            )
        )
    if estimate.solution.status != "optimal":
        findings.append(
            Finding(
                "not_optimal",
                Severity.REJECT,
                f"the solver stopped with '{estimate.solution.status}'",
                remedy_for("not_optimal"),
            )
        )
    return tuple(findings)


def check_borders(estimate: Estimate, constraints: Constraints) -> tuple[Finding, ...]:
    """Findings on parameters that lie at a border of ``at_most`` or ``mass``: the data wants them beyond it.

    Only a notice where the data do not show the parameter, since then the prior alone is beyond the border. Parameters
    that cannot be negative, such as friction, are no borders that somebody set.
    """
    layout, values = estimate.layout, dict(zip(estimate.layout.names, estimate.parameters.tolist(), strict=True))
    shown = dict(zip(layout.names, estimate.shown_by_data.tolist(), strict=True))
    borders = [(name, limit, _AT_BORDER * abs(limit), "at_most") for name, limit in constraints.at_most.items()]
    for link, (lowest, highest) in constraints.mass.items():
        width = _AT_BORDER * (highest - lowest)
        borders += [(f"{link}.m", limit, width, "mass") for limit in (lowest, highest) if highest > lowest]
    return tuple(
        Finding(
            "border_reached",
            Severity.CARE if shown[name] else Severity.NOTICE,
            f"{name} is {values[name]:.4g}, at the border of {limit:.4g} that was set for it",
            remedy_for("border_reached", "" if shown[name] else "open", option=option),
            (_owner(layout, name),),
        )
        for name, limit, width, option in borders
        if abs(values[name] - limit) <= width
    )


def check_excitation(estimate: Estimate, confidence: TorqueConfidence | None) -> tuple[Finding, ...]:
    """Findings on joints whose torque stays uncertain, and on base parameters that the motion does not show at all.

    Parameters
    ----------
    confidence : TorqueConfidence or None
        Of the estimate; None on a free base.
    """
    findings = []
    remedy = remedy_for("little_excited")
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


def _owner(layout: ParameterLayout, parameter: str) -> str:
    """Link or joint of a parameter's name."""
    return parameter.rpartition(".")[0]


def _listed(names: list[str]) -> str:
    return ", ".join(names)
