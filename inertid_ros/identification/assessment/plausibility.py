"""Plausibility of parameters: masses and their positions, friction, stiffness, and delay of effort."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from inertid_ros.config.robot import FRICTION_TERMS
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.inertial_parameters import Ellipsoid, pseudo_inertia, transform
from inertid_ros.identification.solvers.coordinates import contradicted_friction
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.link_shapes import surrounding_ellipsoids

from .estimate import Estimate
from .torque_confidence import sample_states, torque_confidence

# A mass is implausible if its change from the URDF exceeds both this factor and this share of the robot's mass;
# payloads and guesses do not.
_MAX_MASS_FACTOR, _MAX_MASS_CHANGE_SHARE = 4.0, 0.05
_GRAVE_MASS_FACTOR, _GRAVE_MASS_SHARE = 10.0, 0.5  # even a guess is closer
_MAX_TOTAL_MASS_FACTOR = 3.0  # of the URDF's total mass; even rough descriptions are closer
_GRAVE_TOTAL_MASS_FACTOR = 30.0  # densities of materials differ less
_MIN_WEIGHT_SHARE = 0.1  # of the torque of motion; less gravity, as with vertical axes, gives no information on masses
_SURE_DEVIATIONS = 3.0  # standard deviations; a value is implausible only if it is farther off
_MAX_NAMES = 4  # names in a message
# Efforts count as free of friction if friction is at most the first share of each joint's torque, and the error of all
# joints at most the second value: real robots have more friction.
_FRICTIONLESS_SHARE, _EXPLAINED_ERROR = 3e-3, 0.02
_SPRING_TORQUE_SHARE = 0.5  # of a joint's RMS torque; a stronger spring is visible, and would be declared


def plausibility(estimate: Estimate, loaded: Collection[str] = (), masses_open: bool = False) -> Iterator[Finding]:
    """Findings on identified masses and their positions, on friction and stiffness, and on the delay of effort.

    A value counts only if its whole interval of three standard deviations is implausible. A body counts only if the
    data determine its mass, see :attr:`.Estimate.shown_by_data`.

    Parameters
    ----------
    loaded : links with a load that is not in the URDF; their masses may have any value
    masses_open : whether a finding already questions all masses of the URDF; a wrong mass is then not grave
    """
    masses = tuple(_masses(estimate, loaded, Severity.CARE if masses_open else Severity.REJECT))
    yield from masses
    if all(finding.subjects or finding.cause != "mass_implausible" for finding in masses):
        yield from _weight_on_joints(estimate, loaded)
    yield from _places(estimate, loaded)
    for check in (_placeholders, _friction, _no_friction, _stiffness, _delay):
        yield from check(estimate)


def _masses(estimate: Estimate, loaded: Collection[str], gravest: Severity) -> Iterator[Finding]:
    """Report masses far from their URDF values; only a notice if the data leave the mass too uncertain."""
    prior, masses = estimate.model.consistent_body_prior[:, 0], estimate.bodies[:, 0]
    columns = np.array([estimate.layout.body(body).start for body in range(len(masses))])
    deviations, shown = estimate.standard_deviation[columns], estimate.shown_by_data[columns]
    total = float(prior.sum())
    # A mass that the data leave open counts with its value in the URDF.
    sum_of_masses = total + float((masses - prior)[shown].sum())
    deviation = float(np.sqrt(max(estimate.covariance[np.ix_(columns[shown], columns[shown])].sum(), 0.0)))
    factor = _nearest(sum_of_masses, total, deviation) / total
    factor = max(factor, 1 / max(factor, 1e-9))
    if factor > _MAX_TOTAL_MASS_FACTOR:
        severity = Severity.REJECT if factor > _GRAVE_TOTAL_MASS_FACTOR else Severity.CARE
        evidence = f"all links together weigh {_weight(sum_of_masses, deviation)}, in the URDF {total:.4g} kg"
        yield Finding.with_remedy("mass_implausible", severity, evidence, case="total")
    for index, link in enumerate(estimate.layout.links):
        mass, before = float(masses[index]), float(prior[index])
        if link in loaded or not _far(mass, before, total):
            continue
        nearest = _nearest(mass, before, float(deviations[index])) if shown[index] else before
        cause, severity = "mass_implausible", Severity.CARE
        if not _far(nearest, before, total):
            cause, severity = "mass_open", Severity.NOTICE
        elif _far(nearest, before, total, _GRAVE_MASS_FACTOR, _GRAVE_MASS_SHARE):
            severity = gravest
        evidence = f"{link} weighs {_weight(mass, deviations[index])}, in the URDF {before:.4g} kg"
        yield Finding.with_remedy(cause, severity, evidence, link)


def _weight_on_joints(estimate: Estimate, loaded: Collection[str]) -> Iterator[Finding]:
    """Report efforts that belong to a robot of another weight, such as motor currents.

    The data determine the torque of gravity even if they leave open how links share it.
    """
    model = estimate.model
    if model.free or not model.pinocchio.gravity.linear.any():
        return
    states = sample_states(model)
    still = replace(states, v=np.zeros_like(states.v), a=np.zeros_like(states.a))
    known, prior = np.isin(estimate.layout.links, list(loaded))[:, None], model.consistent_body_prior
    weights = [rigid_torque(model, bodies, still.q, still.v, still.a)
               for bodies in (prior, np.where(known, prior, estimate.bodies))]
    before, found = (float(np.sqrt(np.mean(np.sum(weight**2, axis=1)))) for weight in weights)
    moving = np.sqrt(np.mean(np.sum(rigid_torque(model, prior, states.q, states.v, states.a) ** 2, axis=1)))
    if before <= _MIN_WEIGHT_SHARE * moving:
        return
    deviation = float(np.linalg.norm(torque_confidence(estimate, still).deviation))
    factor = _nearest(max(found, 1e-9 * before), before, deviation) / before
    factor = max(factor, 1 / factor)
    if factor > _MAX_TOTAL_MASS_FACTOR:
        severity = Severity.REJECT if factor > _GRAVE_TOTAL_MASS_FACTOR else Severity.CARE
        evidence = (
            f"gravity loads the joints with {found:.3g} N m or N (RMS over their range; standard deviation"
            f" {deviation:.3g}), and with {before:.3g} according to the URDF")
        yield Finding.with_remedy("mass_implausible", severity, evidence, case="total")


def _places(estimate: Estimate, loaded: Collection[str]) -> Iterator[Finding]:
    """Report bodies whose mass cannot lie inside their link's shape ([Wensing2018]_ eq. 23).

    The finding is a notice if the data leave the mass open. Meshes are read only if a body exceeds the span of the
    link frames.
    """
    if not any(_is_outside(estimate, body, bound) for body, bound in enumerate(surrounding_ellipsoids(estimate.model))):
        return
    for body, bound in enumerate(surrounding_ellipsoids(estimate.model, shapes=True)):
        link, pi = estimate.layout.links[body], estimate.bodies[body]
        if bound is not None and link not in loaded and _is_outside(estimate, body, bound):
            seen = pseudo_inertia(transform(pi, np.eye(3), -bound.centre))
            distance, reach = np.sqrt(np.trace(seen[:3, :3]) / pi[0]), np.sqrt(np.trace(bound.shape) / 3)
            evidence = f"the mass of {link} lies {distance:.2g} m (RMS) from the middle of its shape"
            evidence += f"; the corners of the shape are {reach:.2g} m from its middle"
            shown = estimate.shown_by_data[estimate.layout.body(body).start]
            yield Finding.with_remedy("mass_outside", Severity.CARE if shown else Severity.NOTICE, evidence, link)


def _is_outside(estimate: Estimate, body: int, bound: Ellipsoid | None) -> bool:
    if bound is None:
        return False
    columns, row = estimate.layout.body(body), bound.row
    deviation = np.sqrt(max(float(row @ estimate.covariance[columns, columns] @ row), 0.0))
    return bool(row @ estimate.parameters[columns] + _SURE_DEVIATIONS * deviation < 0)


def _far(
    mass: float, before: float, total: float, factor: float = _MAX_MASS_FACTOR, share: float = _MAX_MASS_CHANGE_SHARE
) -> bool:
    times = max(mass, 1e-9 * before) / before
    return bool(max(times, 1 / times) > factor and abs(mass - before) > share * total)


def _nearest(mass: float, before: float, deviation: float) -> float:
    """Value closest to the URDF's mass in the interval of three standard deviations about a mass.

    The interval is normal towards smaller masses and log-normal towards larger masses: in each direction, the wider of
    the two.
    """
    if mass > before:
        return max(mass - _SURE_DEVIATIONS * deviation, before)
    mass = max(mass, 1e-9 * before)
    return min(mass * float(np.exp(_SURE_DEVIATIONS * np.sqrt(np.log1p((deviation / mass) ** 2)))), before)


def _weight(mass: float, deviation: float) -> str:
    return f"{mass:.4g} kg (standard deviation {deviation:.3g} kg)"


def _placeholders(estimate: Estimate) -> Iterator[Finding]:
    """Report bodies with a placeholder in place of their inertia."""
    model = estimate.model
    if names := [model.link_names[body] for body in np.flatnonzero(model.placeholders)]:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        evidence = f"{', '.join(names[:_MAX_NAMES])}{more} have the same inertia in the URDF, about every axis"
        yield Finding.with_remedy("placeholder_inertia", Severity.NOTICE, evidence, *names)


def _friction(estimate: Estimate) -> Iterator[Finding]:
    """Report friction of the URDF that was not used, because the measured efforts exclude it."""
    excluded = contradicted_friction(estimate.model, estimate.information)
    if len(excluded):
        names = [estimate.layout.names[column] for column in excluded]
        values = [f"{name} {estimate.model.prior[column]:g}" for name, column in zip(names, excluded, strict=True)]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        evidence = f"{', '.join(values[:_MAX_NAMES])}{more} would need more than the measured efforts"
        joints = dict.fromkeys(name.rpartition(".")[0] for name in names)
        yield Finding.with_remedy("friction_excluded", Severity.NOTICE, evidence, *joints)


def _no_friction(estimate: Estimate) -> Iterator[Finding]:
    """Report efforts that bodies alone explain, such as efforts that a controller computes from a model."""
    layout = estimate.layout
    measured = estimate.equations.equation_type == "force" and {"viscous", "coulomb"} <= set(layout.drive_terms)
    if not measured or estimate.train_relative_error > _EXPLAINED_ERROR:
        return
    columns = np.concatenate([np.arange(layout.size)[layout.drive(term)] for term in FRICTION_TERMS])
    friction = np.where(np.isin(np.arange(layout.size), columns), estimate.parameters, 0.0)
    shares = [
        np.linalg.norm(channel.r_factor[:, :-1] @ friction[channel.columns]) / np.linalg.norm(channel.r_factor[:, -1])
        for channel in estimate.information.channels[estimate.equations.joint_channels]
        if channel.count and channel.r_factor[:, -1].any()]
    if shares and max(shares) <= _FRICTIONLESS_SHARE:
        evidence = f"friction of every joint is at most {100 * max(shares):.1g} % of its torque"
        yield Finding.with_remedy("effort_without_friction", Severity.NOTICE, evidence)


def _stiffness(estimate: Estimate) -> Iterator[Finding]:
    """Report stiffness that makes most of a joint's torque."""
    model, stiffness = estimate.model, estimate.drive("stiffness")
    if not stiffness.any():
        return
    least = np.abs(stiffness) - _SURE_DEVIATIONS * estimate.standard_deviation[estimate.layout.drive("stiffness")]
    lower, upper = model.limits.lower, model.limits.upper
    half = np.where(np.isfinite(upper - lower), 0.5 * np.abs(upper - lower), np.pi)
    torques = estimate.equations.of_joints(estimate.information.rms_measured)  # NaN for joints without a channel
    for index, (joint, torque) in enumerate(zip(model.joint_names, torques, strict=True)):
        if torque > 0 and least[index] * half[index] > _SPRING_TORQUE_SHARE * torque:
            evidence = (
                f"{joint} has a stiffness of {stiffness[index]:.3g} N m/rad: {stiffness[index] * half[index]:.3g}"
                f" N m at its limits, compared with an RMS torque of {torque:.3g}")
            yield Finding.with_remedy("parameter_implausible", Severity.NOTICE, evidence, joint)


def _delay(estimate: Estimate) -> Iterator[Finding]:
    """Report a removed delay, or an implausibly long delay that improves the prediction of held-out blocks."""
    delay = estimate.delay_found
    if delay is not None and delay.at_border and delay.predicts_better:
        evidence = f"effort fits motion best when it is shifted by {1e3 * abs(delay.seconds):.0f} ms or more"
        yield Finding.with_remedy("delay", Severity.CARE, evidence, case="too_large")
    elif delay is not None and not delay.at_border and delay.removed:
        if estimate.model.command_gains is not None:
            evidence = f"the drives follow commands {-1e3 * delay.seconds:.2g} ms after their stamps"
            yield Finding.with_remedy("delay", Severity.NOTICE, evidence, case="commanded")
            return
        order = "later" if delay.seconds > 0 else "earlier"
        evidence = f"effort is {1e3 * abs(delay.seconds):.2g} ms {order} than motion"
        yield Finding.with_remedy("delay", Severity.NOTICE, evidence, case="removed")
