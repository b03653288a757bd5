"""The gate: whether a result may be used, the checks of an estimate behind that, and what to do next."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from inertid_ros.core.findings import CAUSES, Finding, Severity
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.solvers.coordinates import contradicted_friction

from .estimate import Estimate
from .torque_confidence import TorqueConfidence

_OPEN_TORQUE_SHARE = 0.5  # uncertainty over a joint's torque: beyond it the torque may be anything from zero to twice
_MAX_COMBINATIONS_NAMED = 3  # combinations that a message lists
_BORDER_TOLERANCE = 1e-3  # of the border, or of the width of the interval: interior points end a little inside
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
_COMMANDS = {
    "look": "inertid info RECORDING",
    "plan": "inertid excite --urdf URDF --prior RESULT --output plan",
    "validate": "inertid identify RECORDINGS --urdf URDF --validate OTHER_MOTION --output NEW_RESULT",
    "correct": "inertid identify RECORDINGS --urdf URDF --config CORRECTED.yaml --output NEW_RESULT",
    "record": "inertid identify NEW_RECORDING --urdf URDF --validate OTHER_MOTION --output NEW_RESULT",
    "use": "ros2 launch inertid_ros online.launch.py result:=RESULT"}


class Verdict(Enum):
    """Whether a result may be used; the values are the words of reports and messages."""

    USE = "use"
    CARE = "use with care"
    REJECT = "do not use"


@dataclass(frozen=True)
class GateDecision:
    """Verdict on a result.

    Attributes
    ----------
    verdict : by the gravest finding
    reasons : findings against using the result, gravest first; empty if the verdict is ``USE``
    notices : findings without influence on the verdict
    """

    verdict: Verdict
    reasons: tuple[Finding, ...] = ()
    notices: tuple[Finding, ...] = ()

    @classmethod
    def from_findings(cls, findings: Iterable[Finding]) -> "GateDecision":
        """Decide from all findings; duplicates count once."""
        ordered = sorted(dict.fromkeys(findings), key=lambda finding: -int(finding.severity))
        reasons = tuple(finding for finding in ordered if finding.severity >= Severity.CARE)
        verdict = Verdict.USE
        if reasons:
            verdict = Verdict.REJECT if reasons[0].severity >= Severity.REJECT else Verdict.CARE
        return cls(verdict, reasons, tuple(ordered[len(reasons) :]))

    @property
    def summary(self) -> str:
        """The gravest reason and the number of the others, in one line; empty without reasons."""
        if not self.reasons:
            return ""
        others = len(self.reasons) - 1
        more = f"; and {others} further reason{'s' if others > 1 else ''}" if others else ""
        return f"{self.reasons[0]}{more}"

    def content(self) -> dict[str, Any]:
        """Plain data, as in ``report.json``."""
        return {
            "verdict": self.verdict.value,
            "reasons": [finding.content() for finding in self.reasons],
            "notices": [finding.content() for finding in self.notices]}


def check_solution(estimate: Estimate) -> Iterator[Finding]:
    """Findings on consistency and optimality; either makes a result useless."""
    consistent = is_consistent(estimate.layout.all_bodies(estimate.parameters))
    unlocked = estimate.bodies - estimate.model.body_locked
    real = is_consistent(unlocked) | ~unlocked.any(axis=1)  # what a body has beyond the links behind locked joints
    bodies = zip((*estimate.layout.body_names, *estimate.model.link_names), (*consistent, *real), strict=True)
    names = list(dict.fromkeys(name for name, exists in bodies if not exists))
    if names:
        evidence = f"{', '.join(names)}: not physically consistent, no real bodies have these parameters"
        yield Finding.with_remedy("inconsistent", Severity.REJECT, evidence, *names)
    if estimate.solution.status != "optimal":
        evidence = f"the solver stopped with '{estimate.solution.status}'"
        yield Finding.with_remedy("not_optimal", Severity.REJECT, evidence)


def check_borders(estimate: Estimate, constraints: Constraints) -> Iterator[Finding]:
    """Findings on parameters at a border of ``at_most`` or ``mass``: the data wants them beyond it.

    Only a notice if the data do not show the parameter, since then the prior alone is beyond the border. Bounds at
    zero, as of friction, are no borders that a user set.
    """
    columns = {name: column for column, name in enumerate(estimate.layout.names)}
    borders = [(name, limit, _BORDER_TOLERANCE * abs(limit), "at_most") for name, limit in constraints.at_most.items()]
    for link, (lowest, highest) in constraints.mass.items():
        width = _BORDER_TOLERANCE * (highest - lowest)
        borders += [(f"{link}.m", limit, width, "mass") for limit in (lowest, highest) if highest > lowest]
    for name, limit, width, option in borders:
        value, shown = estimate.parameters[columns[name]], estimate.shown_by_data[columns[name]]
        if abs(value - limit) <= width:
            severity, case = (Severity.CARE, "") if shown else (Severity.NOTICE, "open")
            evidence = f"{name} is {value:.4g}, at the border of {limit:.4g} that was set for it"
            subject = name.rpartition(".")[0]
            yield Finding.with_remedy("border_reached", severity, evidence, subject, case=case, option=option)


def check_excitation(estimate: Estimate, confidence: TorqueConfidence | None) -> Iterator[Finding]:
    """Findings on joints whose torque stays uncertain, and on base parameters that the motion does not show at all.

    ``confidence`` is None on a free base.
    """
    if confidence is not None:
        for joint, share in zip(confidence.joint_names, confidence.shares, strict=True):
            if share > _OPEN_TORQUE_SHARE:
                evidence = f"{joint}: its torque over its range is known to {100 * share:.0f} % only"
                yield Finding.with_remedy("little_excited", Severity.CARE, evidence, joint)
    measured = np.unique(np.concatenate(estimate.equations.columns))
    every = np.intersect1d(base_parameters_of_robot(estimate.model).independent, measured)
    every = every[every < estimate.layout.inertial_size]  # of bodies: friction that a motion does not show is its own
    lost = [estimate.layout.names[column] for column in np.setdiff1d(every, estimate.base.independent)]
    if lost:
        more = f" and {len(lost) - _MAX_COMBINATIONS_NAMED} more" if len(lost) > _MAX_COMBINATIONS_NAMED else ""
        evidence = (
            f"{len(every) - len(lost)} of the bodies' {len(every)} base parameters show in the motion; not apart from"
            f" others: {', '.join(lost[:_MAX_COMBINATIONS_NAMED])}{more}")
        yield Finding.with_remedy("little_excited", Severity.NOTICE, evidence)


def plausibility(estimate: Estimate, loaded: Collection[str] = (), masses_open: bool = False) -> Iterator[Finding]:
    """Findings on identified masses, friction and stiffness, and on the delay of effort.

    A value counts only if its whole interval of three standard deviations is implausible, and a mass only if the data
    show it, see :attr:`.Estimate.shown_by_data`.

    Parameters
    ----------
    loaded : links that hold a load that is not in the URDF, whose masses may be anything
    masses_open : whether a finding says that all masses of the URDF may be wrong; then no single one is grave
    """
    yield from _masses(estimate, loaded, Severity.CARE if masses_open else Severity.REJECT)
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


@dataclass(frozen=True)
class NextAction:
    """The one thing to do next: an imperative and its command, in which names in capitals are the reader's own."""

    text: str
    command: str


def next_action(gate: GateDecision, names: Mapping[str, str]) -> NextAction:
    """The remedy of the gravest reason; the use of the result if there is none.

    Parameters
    ----------
    names : values of the names in capitals, as far as known: ``URDF``, ``RESULT``, ``RECORDINGS``
    """
    text = "give calibrated.urdf to what uses the URDF, or follow the robot with this result"
    command = "use"
    if gate.reasons:
        prefix = "" if gate.verdict is Verdict.REJECT else "before relying on it, "
        text, command = prefix + gate.reasons[0].remedy, CAUSES[gate.reasons[0].cause].command
    return NextAction(text, re.sub(r"[A-Z_]{4,}", lambda name: names.get(name[0], name[0]), _COMMANDS[command]))
