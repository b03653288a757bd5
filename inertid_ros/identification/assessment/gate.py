"""Gate: verdict on the use of a result, the checks of an estimate behind it, and the next action.

The module :mod:`.plausibility` checks whether parameters are plausible.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import compress

import numpy as np

from inertid_ros.core.findings import CAUSES, Finding, Severity
from inertid_ros.core.inertial_parameters import is_consistent, is_semi_consistent, mass_com_inertia, second_moments
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.solvers.constraints import Constraints

from .estimate import Estimate
from .torque_confidence import TorqueConfidence

# Uncertainty (1 sigma) over torque. Above the first value, a joint's torque may be between zero and twice the
# prediction. Above the second, for all joints together, the URDF as given is better.
_OPEN_TORQUE_SHARE, _UNKNOWN_TORQUE_SHARE = 0.5, 1.0
_MAX_COMBINATIONS_NAMED = 3  # combinations that a message lists
_BORDER_TOLERANCE = 1e-3  # of the border, or of the interval's width: interior-point solutions end slightly inside
_FLAT_SHARE = 1e-6  # smallest over largest second moment of a body thinner than a thousandth of its length
_COMMANDS = {
    "look": "inertid info RECORDING",
    "plan": "inertid excite --urdf URDF CONFIGURED LOCKED --prior RESULT --output plan",
    "validate": "inertid identify RECORDINGS --urdf URDF CONFIGURED LOCKED OPTIONS --validate OTHER_MOTION"
        " --output NEW_RESULT",
    "correct": "inertid identify RECORDINGS --urdf URDF LOCKED OPTIONS --config CORRECTED.yaml --output NEW_RESULT",
    "record": "inertid identify NEW_RECORDING --urdf URDF CONFIGURED LOCKED OPTIONS --validate OTHER_MOTION"
        " --output NEW_RESULT",
    "use": "ros2 launch inertid_ros online.launch.py result:=RESULT"}


class Verdict(Enum):
    """Verdict on the use of a result; reports and messages contain the values."""

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
        """The gravest reason and the number of further reasons, in one line; empty without reasons."""
        if not self.reasons:
            return ""
        others = len(self.reasons) - 1
        more = f"; and {others} further reason{'s' if others > 1 else ''}" if others else ""
        return f"{self.reasons[0]}{more}"

    def content(self) -> dict[str, object]:
        """Plain data, as in ``report.json``."""
        return {
            "verdict": self.verdict.value,
            "reasons": [finding.content() for finding in self.reasons],
            "notices": [finding.content() for finding in self.notices]}


def check_solution(estimate: Estimate) -> Iterator[Finding]:
    """Report bodies that are inconsistent or at the border of consistency, and a solution that is not optimal.

    Inconsistent bodies and a solution that is not optimal make a result useless.
    """
    every = estimate.layout.all_bodies(estimate.parameters)
    consistent = is_consistent(every)
    unlocked = estimate.bodies - estimate.model.body_locked
    real = is_consistent(unlocked) | ~unlocked.any(axis=1)  # body without the links behind locked joints
    bodies = zip((*estimate.layout.body_names, *estimate.model.link_names), (*consistent, *real), strict=True)
    names = list(dict.fromkeys(name for name, exists in bodies if not exists))
    if names:
        lacking = "only semi-consistent" if is_semi_consistent(every).all() else "not physically consistent"
        evidence = f"{', '.join(names)}: {lacking}, real bodies cannot have these parameters"
        yield Finding.with_remedy("inconsistent", Severity.REJECT, evidence, *names)
    possible = np.where(consistent[:, None], every, estimate.model.consistent_prior)
    moments = np.linalg.eigvalsh(second_moments(mass_com_inertia(possible)[2]))
    flat = list(compress(estimate.layout.body_names, moments[:, 0] < _FLAT_SHARE * moments[:, -1]))
    if flat:
        evidence = f"{', '.join(flat)}: at the border of physical consistency, without extent in some direction"
        yield Finding.with_remedy("border_reached", Severity.CARE, evidence, *flat, case="consistency")
    if estimate.solution.status != "optimal":
        evidence = f"the solver stopped with '{estimate.solution.status}'"
        yield Finding.with_remedy("not_optimal", Severity.REJECT, evidence)


def check_borders(estimate: Estimate, constraints: Constraints) -> Iterator[Finding]:
    """Report parameters at a bound of ``at_most`` or ``mass``, which the fit would exceed without the bound.

    The finding is only a notice if the data do not determine the parameter: then the prior, not the data, exceeds the
    bound. Bounds at zero, as for friction, are not reported, since the user did not set them.
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
            evidence = f"{name} is {value:.4g}, at its configured bound of {limit:.4g}"
            subject = name.rpartition(".")[0]
            yield Finding.with_remedy("border_reached", severity, evidence, subject, case=case, option=option)


def check_excitation(estimate: Estimate, confidence: TorqueConfidence | None) -> Iterator[Finding]:
    """Report torque that stays uncertain, and base parameters that the motion does not excite.

    ``confidence`` is None on a free base.
    """
    if confidence is not None:
        total = float(np.linalg.norm(confidence.deviation) / np.linalg.norm(confidence.torque))
        if total > _UNKNOWN_TORQUE_SHARE:
            evidence = (
                f"predicted torque over the robot's range is uncertain by {100 * total:.0f} % (1 sigma;"
                f" limit {100 * _UNKNOWN_TORQUE_SHARE:.0f} %)")
            yield Finding.with_remedy("little_excited", Severity.REJECT, evidence)
        for joint, share in zip(confidence.joint_names, confidence.shares, strict=True):
            if share > _OPEN_TORQUE_SHARE:
                evidence = (
                    f"{joint}: predicted torque over its range is uncertain by {100 * share:.0f} % (1 sigma; limit"
                    f" {100 * _OPEN_TORQUE_SHARE:.0f} %)")
                yield Finding.with_remedy("little_excited", Severity.CARE, evidence, joint)
    measured = np.unique(np.concatenate(estimate.equations.columns))
    every = np.intersect1d(base_parameters_of_robot(estimate.model).independent, measured)
    every = every[every < estimate.layout.inertial_size]  # bodies only: unexcited friction affects only itself
    lost = [estimate.layout.names[column] for column in np.setdiff1d(every, estimate.base.independent)]
    if lost:
        more = f" and {len(lost) - _MAX_COMBINATIONS_NAMED} more" if len(lost) > _MAX_COMBINATIONS_NAMED else ""
        evidence = (
            f"the motion determines {len(every) - len(lost)} of the bodies' {len(every)} base parameters; not"
            f" determined separately: {', '.join(lost[:_MAX_COMBINATIONS_NAMED])}{more}")
        yield Finding.with_remedy("not_separated", Severity.NOTICE, evidence)


@dataclass(frozen=True)
class NextAction:
    """Next step for the user: an imperative and its command; the user fills in names in capitals."""

    text: str
    command: str


def next_action(gate: GateDecision, names: Mapping[str, str]) -> NextAction:
    """Remedy of the gravest reason, or use of the result if there are no reasons.

    Parameters
    ----------
    names : known values of the names in capitals: ``URDF``, ``RESULT``, ``RECORDINGS``, and options of the command
        line as ``CONFIGURED``, ``LOCKED`` and ``OPTIONS``, which are left out by default
    """
    text = "use calibrated.urdf in place of the given URDF, or track the robot online with this result"
    command = "use"
    if gate.reasons:
        prefix = "" if gate.verdict is Verdict.REJECT else "before relying on it, "
        text, command = prefix + gate.reasons[0].remedy, CAUSES[gate.reasons[0].cause].command
    values = {"CONFIGURED": "", "LOCKED": "", "OPTIONS": "", **names}
    filled = re.sub(r"[A-Z_]{4,}", lambda name: values.get(name[0], name[0]), _COMMANDS[command])
    return NextAction(text, re.sub(" +", " ", filled))
