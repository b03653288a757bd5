"""Rounds of a calibration: excite and identify again until torque is known well enough, or no better any more.

The criterion is :class:`~inertid_ros.identification.assessment.torque_confidence.TorqueConfidence`, the uncertainty of
predicted torque over the robot's range.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inertid_ros.config.identification import RoundsOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence


@dataclass(frozen=True)
class Round:
    """Torque confidence after a round.

    Attributes
    ----------
    recordings : tuple of str
        Recordings fitted, those of earlier rounds included.
    deviation : float
        Standard deviation of predicted torque, as a share of torque, of the joint where it is largest.
    joint : str
        That joint.
    """

    recordings: tuple[str, ...]
    deviation: float
    joint: str

    @classmethod
    def of(cls, recordings: Sequence[str], confidence: TorqueConfidence) -> "Round":
        """Round of an estimate's confidence."""
        return cls(tuple(recordings), confidence.share, confidence.joint)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "Round":
        """Round of one element of ``rounds`` in a report.

        Raises
        ------
        IdentificationError
            The element is damaged.
        """
        try:
            return cls(tuple(content["recordings"]), float(content["deviation"]), str(content["joint"]))
        except (KeyError, TypeError, ValueError) as error:
            raise IdentificationError(f"rounds: the last report is damaged ({error!r}); begin anew") from None


@dataclass(frozen=True)
class RoundDecision:
    """Whether another round follows.

    Attributes
    ----------
    gain : float
        Share by which the last round lowered the deviation; NaN in the first.
    reason : str
        Why this was the last round; empty where another one follows.
    """

    gain: float
    reason: str


def decide(rounds: Sequence[Round], options: RoundsOptions, usable: bool = True) -> RoundDecision:
    """Decision after the last of ``rounds``.

    Parameters
    ----------
    rounds : sequence of Round
        So far.
    options : RoundsOptions
        When they end.
    usable : bool
        Whether the last result may be used; the confidence of one that may not is not to be relied on.

    Raises
    ------
    IdentificationError
        There is no round.
    """
    if not rounds:
        raise IdentificationError("rounds: there is no round yet; identify first")
    last, count = rounds[-1], len(rounds)
    gain = 1.0 - last.deviation / rounds[-2].deviation if count > 1 and rounds[-2].deviation > 0 else math.nan
    known = f"torque is known to {100 * last.deviation:.2g} % ({last.joint})"
    if usable and last.deviation <= options.wanted_deviation:
        return RoundDecision(gain, f"confidence reached: {known}, {100 * options.wanted_deviation:.2g} % was wanted")
    if gain < options.least_gain:
        return RoundDecision(gain, f"nothing more is gained: round {count} made it {100 * gain:.0f} % better; {known}")
    if count >= options.rounds:
        return RoundDecision(gain, f"all rounds are done ({count}): {known}")
    return RoundDecision(gain, "")
