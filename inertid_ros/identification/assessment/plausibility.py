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
_SURE = 3.0  # standard deviations; what is within is not known to be implausible
_SHOWN = 4  # names in a message
_FRICTIONLESS, _EXPLAINED = 3e-3, 0.02  # of the torque of every joint, and of all: no robot has so little friction
_FRICTION = ("viscous", "coulomb", "stribeck")
_SPRING = 0.5  # of a joint's RMS torque; more is a spring that one sees, and declares


def plausibility(estimate: Estimate, loaded: Collection[str] = ()) -> tuple[Finding, ...]:
    """Findings on identified masses, friction and stiffness.

    A value counts only if its whole interval of three standard deviations is implausible, and a mass only if the data
    show it, see :attr:`.Estimate.shown_by_data`.

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
        ``mass_open`` is a notice in its place where the data do not show the mass so well.
        ``friction_excluded`` for friction of the URDF that the measured efforts exclude, which was not used.
        ``effort_without_friction`` where bodies alone explain all efforts, as those that a controller computes.
        ``parameter_implausible`` for a stiffness that holds most of a joint's torque. ``delay`` where one was taken out
        of the effort, or where held-out blocks are predicted better by one that is longer than drivers can have.
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
    columns = np.array([estimate.layout.body(body).start for body in range(len(found))])
    deviations, shown = estimate.standard_deviation[columns], estimate.shown_by_data[columns]
    total = float(given.sum())
    findings = []
    # A mass that the data leave open counts as in the URDF.
    sum_found = total + float((found - given)[shown].sum())
    deviation = float(np.sqrt(max(estimate.covariance[np.ix_(columns[shown], columns[shown])].sum(), 0.0)))
    if not 1 / _TOTAL < _nearest(sum_found, total, deviation) / total < _TOTAL:
        evidence = f"all links together weigh {_weight(sum_found, deviation)}, in the URDF {total:.4g} kg"
        remedy = remedy_for("mass_implausible", "total")
        findings.append(Finding("mass_implausible", Severity.REJECT, evidence, remedy))
    for index, link in enumerate(estimate.layout.links):
        mass, before = float(found[index]), float(given[index])
        if link in loaded or not _far(mass, before, total):
            continue
        nearest = _nearest(mass, before, float(deviations[index])) if shown[index] else before
        cause, severity = "mass_implausible", Severity.CARE
        if not _far(nearest, before, total):
            cause, severity = "mass_open", Severity.NOTICE
        elif _far(nearest, before, total, _GRAVE_FACTOR, _GRAVE_SHARE):
            severity = Severity.REJECT
        evidence = f"{link} weighs {_weight(mass, deviations[index])}, in the URDF {before:.4g} kg"
        findings.append(Finding(cause, severity, evidence, remedy_for(cause), (link,)))
    return findings


def _far(mass: float, given: float, total: float, factor: float = _FACTOR, share: float = _SHARE) -> bool:
    """Whether a mass is off the URDF's by more than a factor and a share of the robot's mass."""
    times = max(mass, 1e-9 * given) / given
    return bool(max(times, 1 / times) > factor and abs(mass - given) > share * total)


def _nearest(mass: float, given: float, deviation: float) -> float:
    """End of a mass's interval towards the URDF's, or the URDF's where it lies within.

    The wider one of a normal and a log-normal distribution: of the mass towards less, of its logarithm towards more.
    """
    if mass > given:
        return max(mass - _SURE * deviation, given)
    mass = max(mass, 1e-9 * given)
    return min(mass * float(np.exp(_SURE * np.sqrt(np.log1p((deviation / mass) ** 2)))), given)


def _weight(mass: float, deviation: float) -> str:
    return f"{mass:.4g} kg (standard deviation {deviation:.3g} kg)"


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
    least = np.abs(stiffness) - _SURE * estimate.standard_deviation[estimate.layout.drive("stiffness")]
    findings = []
    lower, upper = model.limits.lower, model.limits.upper
    half = np.where(np.isfinite(upper - lower), 0.5 * np.abs(upper - lower), np.pi)
    torques = estimate.equations.of_joints(estimate.information.rms_measured)  # NaN where joints have no channel
    for index, (joint, torque) in enumerate(zip(model.joint_names, torques, strict=True)):
        if torque > 0 and least[index] * half[index] > _SPRING * torque:
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
    if found is None:
        return []
    if found.at_border:
        if not found.predicts_better:
            return []
        text = f"effort fits motion best when it is shifted by {1e3 * abs(found.seconds):.0f} ms or more"
        return [Finding("delay", Severity.CARE, text, remedy_for("delay", "too_large"))]
    if not found.removed:
        return []
    text = f"effort is {1e3 * abs(found.seconds):.2g} ms {'later' if found.seconds > 0 else 'earlier'} than motion"
    return [Finding("delay", Severity.NOTICE, text, remedy_for("delay", "removed"))]
