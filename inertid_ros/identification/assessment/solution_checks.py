"""Checks of an estimate by itself: physically consistent, optimal, and away from the borders that were set for it."""


from inertid_ros.core.findings import Finding, Severity
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.robot.bodies.inertial_parameters import is_consistent
from inertid_ros.robot.bodies.layout import ParameterLayout

from .estimate import Estimate

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
                "use identify.estimator=consistent",
                tuple(names),
            )
        )
    if estimate.solution.status != "optimal":
        findings.append(
            Finding(
                "not_optimal",
                Severity.REJECT,
                f"the solver stopped with '{estimate.solution.status}'",
                "use the default solver and regularizer, and look for constraints that contradict one another",
            )
        )
    return tuple(findings)


def check_borders(estimate: Estimate, constraints: Constraints) -> tuple[Finding, ...]:
    """Findings on parameters that lie at a border of ``at_most`` or ``mass``: the data wants them beyond it.

    Parameters that cannot be negative, such as friction, are no borders that somebody set.
    """
    layout, values = estimate.layout, dict(zip(estimate.layout.names, estimate.parameters.tolist(), strict=True))
    borders = [(name, limit, _AT_BORDER * abs(limit), "at_most") for name, limit in constraints.at_most.items()]
    for link, (lowest, highest) in constraints.mass.items():
        width = _AT_BORDER * (highest - lowest)
        borders += [(f"{link}.m", limit, width, "mass") for limit in (lowest, highest) if highest > lowest]
    return tuple(
        Finding(
            "border_reached",
            Severity.CARE,
            f"{name} is {values[name]:.4g}, at the border of {limit:.4g} that was set for it",
            f"check constraints.{option}: the data wants this parameter beyond it",
            (_owner(layout, name),),
        )
        for name, limit, width, option in borders
        if abs(values[name] - limit) <= width
    )


def _owner(layout: ParameterLayout, parameter: str) -> str:
    """Link or joint of a parameter's name."""
    return parameter.rpartition(".")[0]


def _listed(names: list[str]) -> str:
    return ", ".join(names)
