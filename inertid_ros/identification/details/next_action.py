"""What to do next with a result, and the command that does it, by the verdict and its gravest reason."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from inertid_ros.identification.assessment.gate import GateDecision, Verdict

_PLAN = "inertid excite --urdf URDF --prior RESULT --output plan"
_VALIDATE = "inertid identify RECORDINGS --urdf URDF --validate OTHER_MOTION --output NEW_RESULT"
_LOOK = "inertid info RECORDING"
_CORRECT = "inertid identify RECORDINGS --urdf URDF --config CORRECTED.yaml --output NEW_RESULT"
_RECORD_AGAIN = "inertid identify NEW_RECORDING --urdf URDF --validate OTHER_MOTION --output NEW_RESULT"
_USE = "ros2 launch inertid_ros online.launch.py result:=RESULT"
# By the cause of the gravest reason; every other cause is of the recording itself, which has to be looked at.
_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("not_validated", "held_out_not_new"), _VALIDATE),
    **dict.fromkeys(("little_motion", "lockstep", "not_excited", "little_excited", "does_not_generalise"), _PLAN),
    **dict.fromkeys(
        (
            "position_unit", "position_offset", "effort_sign", "effort_unit", "effort_current", "undeclared_load",
            "joint_exchange", "effort_exchange", "gravity_compensated", "gravity_direction", "delay", "coupling",
            "friction_excluded", "parameter_implausible", "mass_implausible", "mass_open", "border_reached",
            "inconsistent", "not_optimal", "above_noise", "load_elsewhere", "counterbalance", "lacks_weight",
            "locked_joint_moves", "beyond_limits",
        ),
        _CORRECT,
    ),
    **dict.fromkeys(
        ("short_recording", "worse_than_nothing", "worse_than_urdf", "no_effort", "effort_without_friction"),
        _RECORD_AGAIN,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class NextAction:
    """The one thing to do next.

    Attributes
    ----------
    text : str
        An imperative.
    command : str
        That does it; names in capitals stand for what the reader has.
    """

    text: str
    command: str


def next_action(gate: GateDecision, names: Mapping[str, str]) -> NextAction:
    """The remedy of the gravest reason; what the result is for where there is none.

    Parameters
    ----------
    names : mapping of str to str
        What the names in capitals stand for, as far as it is known: ``URDF``, ``RESULT``, ``RECORDINGS``.
    """
    if not gate.reasons:
        use = "give calibrated.urdf to what uses the URDF, or follow the robot with this result"
        return NextAction(use, _filled(_USE, names))
    gravest = gate.reasons[0]
    prefix = "" if gate.verdict is Verdict.REJECT else "before relying on it, "
    return NextAction(prefix + gravest.remedy, _filled(_COMMANDS.get(gravest.cause, _LOOK), names))


def _filled(command: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Z_]{4,}", lambda found: names.get(found[0], found[0]), command)
