"""Whether parameters are those of a real robot: masses, where they are, friction, stiffness, and delay of effort."""

from collections.abc import Collection, Iterator

import numpy as np

from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.inertial_parameters import Ellipsoid, pseudo_inertia, transform
from inertid_ros.identification.solvers.coordinates import contradicted_friction
from inertid_ros.robot.link_shapes import surrounding_ellipsoids

from .estimate import Estimate

# Of a link's mass in the URDF, and of the robot's mass: payloads and guesses are within.
_MAX_MASS_FACTOR, _MAX_MASS_CHANGE_SHARE = 4.0, 0.05
_GRAVE_MASS_FACTOR, _GRAVE_MASS_SHARE = 10.0, 0.5  # no guess is that wrong
_MAX_TOTAL_MASS_FACTOR = 3.0  # of the URDF's total mass, which even rough descriptions have right to less
_GRAVE_TOTAL_MASS_FACTOR = 30.0  # no material is that much lighter or heavier than another
_SURE_DEVIATIONS = 3.0  # standard deviations; what is within is not known to be implausible
_MAX_NAMES = 4  # names in a message
# Of the torque of every joint, and of all joints: no robot has so little friction.
_FRICTIONLESS_SHARE, _EXPLAINED_ERROR = 3e-3, 0.02
_FRICTION = ("viscous", "coulomb", "stribeck")
_SPRING_TORQUE_SHARE = 0.5  # of a joint's RMS torque; more is a spring that one sees, and declares


def plausibility(estimate: Estimate, loaded: Collection[str] = (), masses_open: bool = False) -> Iterator[Finding]:
    """Findings on identified masses and where they are, on friction and stiffness, and on the delay of effort.

    A value counts only if its whole interval of three standard deviations is implausible, and a body only if the data
    show its mass, see :attr:`.Estimate.shown_by_data`.

    Parameters
    ----------
    loaded : links that hold a load that is not in the URDF, whose masses may be anything
    masses_open : whether a finding says that all masses of the URDF may be wrong; then no single one is grave
    """
    yield from _masses(estimate, loaded, Severity.CARE if masses_open else Severity.REJECT)
    yield from _places(estimate, loaded)
    for check in (_friction, _no_friction, _stiffness, _delay):
        yield from check(estimate)


def _masses(estimate: Estimate, loaded: Collection[str], gravest: Severity) -> Iterator[Finding]:
    """Masses far from the URDF's; a notice if the data do not show a mass so well."""
    prior, masses = estimate.model.consistent_body_prior[:, 0], estimate.bodies[:, 0]
    columns = np.array([estimate.layout.body(body).start for body in range(len(masses))])
    deviations, shown = estimate.standard_deviation[columns], estimate.shown_by_data[columns]
    total = float(prior.sum())
    # A mass that the data leave open counts as in the URDF.
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


def _places(estimate: Estimate, loaded: Collection[str]) -> Iterator[Finding]:
    """Bodies that no mass inside the shapes of their links has ([Wensing2018]_ eq. 23); a notice as of a mass.

    Meshes are read only if a body is outside of what the frames of its links span.
    """
    if not any(_is_outside(estimate, body, bound) for body, bound in enumerate(surrounding_ellipsoids(estimate.model))):
        return
    for body, bound in enumerate(surrounding_ellipsoids(estimate.model, shapes=True)):
        link, pi = estimate.layout.links[body], estimate.bodies[body]
        if bound is not None and link not in loaded and _is_outside(estimate, body, bound):
            seen = pseudo_inertia(transform(pi, np.eye(3), -bound.centre))
            distance, reach = np.sqrt(np.trace(seen[:3, :3]) / pi[0]), np.sqrt(np.trace(bound.shape) / 3)
            evidence = f"the mass of {link} lies {distance:.2g} m (RMS) from the middle of its shape"
            evidence += f", whose corners are {reach:.2g} m from there"
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
    """End of a mass's interval towards the URDF's, or the URDF's mass if it lies within.

    The wider one of a normal and a log-normal distribution: of the mass towards less, of its logarithm towards more.
    """
    if mass > before:
        return max(mass - _SURE_DEVIATIONS * deviation, before)
    mass = max(mass, 1e-9 * before)
    return min(mass * float(np.exp(_SURE_DEVIATIONS * np.sqrt(np.log1p((deviation / mass) ** 2)))), before)


def _weight(mass: float, deviation: float) -> str:
    return f"{mass:.4g} kg (standard deviation {deviation:.3g} kg)"


def _friction(estimate: Estimate) -> Iterator[Finding]:
    """Friction of the URDF that the measured efforts exclude, which was not used."""
    excluded = contradicted_friction(estimate.model, estimate.information)
    if len(excluded):
        names = [estimate.layout.names[column] for column in excluded]
        values = [f"{name} {estimate.model.prior[column]:g}" for name, column in zip(names, excluded, strict=True)]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        evidence = f"{', '.join(values[:_MAX_NAMES])}{more} would take more than the measured efforts"
        joints = dict.fromkeys(name.rpartition(".")[0] for name in names)
        yield Finding.with_remedy("friction_excluded", Severity.NOTICE, evidence, *joints)


def _no_friction(estimate: Estimate) -> Iterator[Finding]:
    """Bodies alone explain all efforts, as those that a controller computes."""
    layout = estimate.layout
    measured = estimate.equations.equation_type == "force" and {"viscous", "coulomb"} <= set(layout.drive_terms)
    if not measured or estimate.train_relative_error > _EXPLAINED_ERROR:
        return
    columns = np.concatenate([np.arange(layout.size)[layout.drive(term)] for term in _FRICTION])
    friction = np.where(np.isin(np.arange(layout.size), columns), estimate.parameters, 0.0)
    shares = [
        np.linalg.norm(channel.r_factor[:, :-1] @ friction[channel.columns]) / np.linalg.norm(channel.r_factor[:, -1])
        for channel in estimate.information.channels[estimate.equations.joint_channels]
        if channel.count and channel.r_factor[:, -1].any()]
    if shares and max(shares) <= _FRICTIONLESS_SHARE:
        evidence = f"no joint shows friction (at most {100 * max(shares):.1g} % of its torque)"
        yield Finding.with_remedy("effort_without_friction", Severity.NOTICE, evidence)


def _stiffness(estimate: Estimate) -> Iterator[Finding]:
    """Stiffness that holds most of a joint's torque."""
    model, stiffness = estimate.model, estimate.drive("stiffness")
    if not stiffness.any():
        return
    least = np.abs(stiffness) - _SURE_DEVIATIONS * estimate.standard_deviation[estimate.layout.drive("stiffness")]
    lower, upper = model.limits.lower, model.limits.upper
    half = np.where(np.isfinite(upper - lower), 0.5 * np.abs(upper - lower), np.pi)
    torques = estimate.equations.of_joints(estimate.information.rms_measured)  # NaN where joints have no channel
    for index, (joint, torque) in enumerate(zip(model.joint_names, torques, strict=True)):
        if torque > 0 and least[index] * half[index] > _SPRING_TORQUE_SHARE * torque:
            evidence = (
                f"{joint} has a stiffness of {stiffness[index]:.3g} N m/rad, {stiffness[index] * half[index]:.3g}"
                f" N m at its limits where its RMS torque is {torque:.3g}")
            yield Finding.with_remedy("parameter_implausible", Severity.NOTICE, evidence, joint)


def _delay(estimate: Estimate) -> Iterator[Finding]:
    """Delay that was removed, or one longer than plausible with which held-out blocks are predicted better."""
    delay = estimate.delay_found
    if delay is not None and delay.at_border and delay.predicts_better:
        evidence = f"effort fits motion best when it is shifted by {1e3 * abs(delay.seconds):.0f} ms or more"
        yield Finding.with_remedy("delay", Severity.CARE, evidence, case="too_large")
    elif delay is not None and not delay.at_border and delay.removed:
        order = "later" if delay.seconds > 0 else "earlier"
        evidence = f"effort is {1e3 * abs(delay.seconds):.2g} ms {order} than motion"
        yield Finding.with_remedy("delay", Severity.NOTICE, evidence, case="removed")
