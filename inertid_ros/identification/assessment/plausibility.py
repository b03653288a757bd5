"""Whether a result is one that such a robot can have: masses and friction against the URDF's, stiffness, delay."""

from collections.abc import Collection

import numpy as np

from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.identification.prior.coordinates import contradicted_friction

from .estimate import Estimate

_FACTOR, _SHARE = 4.0, 0.05  # of a link's mass in the URDF, and of the robot's mass: payloads and guesses are within
_GRAVE_FACTOR, _GRAVE_SHARE = 10.0, 0.5  # no guess is that wrong
_TOTAL = 3.0  # of the URDF's total mass, which even rough descriptions have right to less
_SHOWN = 4  # names in a message
_FRICTIONLESS, _EXPLAINED = 3e-3, 0.02  # of the torque of every joint, and of all: no robot has so little friction
_FRICTION = ("viscous", "coulomb", "stribeck")
_SPRING = 0.5  # of a joint's RMS torque; more is a spring that one sees, and declares


def plausibility(estimate: Estimate, loaded: Collection[str] = ()) -> tuple[Finding, ...]:
    """Findings on identified masses, friction and stiffness.

    A mass that the data do not determine stays at the prior; one that is far from it was moved there by the data, and
    either the URDF or what was measured is wrong.

    Parameters
    ----------
    estimate : Estimate
        Result of a fit.
    loaded : collection of str
        Links that hold what the URDF does not know, whose masses may be anything.

    Returns
    -------
    tuple of Finding
        ``mass_implausible``: rejected where a link or the whole robot has a mass that no URDF is wrong by.
        ``friction_excluded`` for friction of the URDF that the measured efforts exclude, which was not used.
        ``effort_without_friction`` where bodies alone explain all efforts, as those that a controller computes.
        ``parameter_implausible`` for a stiffness that holds most of a joint's torque. ``delay`` where one was taken out
        of the effort, or where none among those that drivers can have explains the effort best.
    """
    return (
        *_masses(estimate, loaded),
        *_friction(estimate),
        *_no_friction(estimate),
        *_stiffness(estimate),
        *_delay(estimate),
    )


def _masses(estimate: Estimate, loaded: Collection[str]) -> list[Finding]:
    given, found = estimate.model.consistent_body_prior[:, 0], estimate.bodies[:, 0]
    total, factor = float(given.sum()), np.maximum(found, 1e-9 * given) / given
    findings = []
    if not 1 / _TOTAL < found.sum() / total < _TOTAL:
        evidence = f"all links together weigh {found.sum():.4g} kg, in the URDF {total:.4g} kg"
        remedy = remedy_for("mass_implausible", "total")
        findings.append(Finding("mass_implausible", Severity.REJECT, evidence, remedy))
    for link, mass, before, times in zip(estimate.layout.links, found, given, factor, strict=True):
        change = abs(mass - before) / total
        if max(times, 1 / times) > _FACTOR and change > _SHARE and link not in loaded:
            grave = times > _GRAVE_FACTOR and change > _GRAVE_SHARE
            findings.append(
                Finding(
                    "mass_implausible",
                    Severity.REJECT if grave else Severity.CARE,
                    f"{link} weighs {mass:.4g} kg, in the URDF {before:.4g} kg",
                    remedy_for("mass_implausible"),
                    (link,),
                )
            )
    return findings


def _friction(estimate: Estimate) -> list[Finding]:
    excluded = contradicted_friction(estimate.model, estimate.information)
    if not len(excluded):
        return []
    names = [estimate.layout.names[column] for column in excluded]
    values = [f"{name} {estimate.model.prior[column]:g}" for name, column in zip(names, excluded, strict=True)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    evidence = f"{', '.join(values[:_SHOWN])}{more} would take more than the measured efforts"
    joints = tuple(dict.fromkeys(name.rpartition(".")[0] for name in names))
    remedy = remedy_for("friction_excluded")
    return [Finding("friction_excluded", Severity.NOTICE, evidence, remedy, joints)]


def _no_friction(estimate: Estimate) -> list[Finding]:
    layout = estimate.layout
    known = estimate.equations.equation_type == "force" and {"viscous", "coulomb"} <= set(layout.drive_terms)
    if not known or estimate.train_relative_error > _EXPLAINED:
        return []
    columns = np.concatenate([np.arange(layout.size)[layout.drive(term)] for term in _FRICTION])
    friction = np.where(np.isin(np.arange(layout.size), columns), estimate.parameters, 0.0)
    shares = [
        np.linalg.norm(channel.r_factor[:, :-1] @ friction[channel.columns]) / np.linalg.norm(channel.r_factor[:, -1])
        for channel in estimate.information.channels[estimate.equations.joint_channels]
        if channel.count and channel.r_factor[:, -1].any()
    ]
    if not shares or max(shares) > _FRICTIONLESS:
        return []
    evidence = f"no joint shows friction (at most {100 * max(shares):.1g} % of its torque)"
    return [Finding("effort_without_friction", Severity.NOTICE, evidence, remedy_for("effort_without_friction"))]


def _stiffness(estimate: Estimate) -> list[Finding]:
    model, stiffness = estimate.model, estimate.drive("stiffness")
    if not stiffness.any():
        return []
    findings = []
    lower, upper = model.limits.lower, model.limits.upper
    half = np.where(np.isfinite(upper - lower), 0.5 * np.abs(upper - lower), np.pi)
    torques = estimate.equations.of_joints(estimate.information.rms_measured)  # NaN where joints have no channel
    for index, (joint, torque) in enumerate(zip(model.joint_names, torques, strict=True)):
        if torque > 0 and abs(stiffness[index]) * half[index] > _SPRING * torque:
            findings.append(
                Finding(
                    "parameter_implausible",
                    Severity.NOTICE,
                    f"{joint} has a stiffness of {stiffness[index]:.3g} N m/rad, {stiffness[index] * half[index]:.3g}"
                    f" N m at its limits where its RMS torque is {torque:.3g}",
                    remedy_for("parameter_implausible"),
                    (joint,),
                )
            )
    return findings


def _delay(estimate: Estimate) -> list[Finding]:
    found = estimate.delay_found
    if found is None or not (found.at_border or found.removed):
        return []
    if found.at_border:
        text = f"effort fits motion best when it is shifted by {1e3 * abs(found.seconds):.0f} ms or more"
        return [Finding("delay", Severity.CARE, text, remedy_for("delay", "too_large"))]
    text = f"effort is {1e3 * abs(found.seconds):.2g} ms {'later' if found.seconds > 0 else 'earlier'} than motion"
    return [Finding("delay", Severity.NOTICE, text, remedy_for("delay", "removed"))]
