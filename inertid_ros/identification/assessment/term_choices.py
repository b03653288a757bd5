"""Whether user terms were kept, see :mod:`inertid_ros.identification.term_choice`."""

from dataclasses import dataclass

from inertid_ros.robot.bodies.user_terms import UserTerm


@dataclass(frozen=True)
class TermChoice:
    """Whether a user term was kept.

    Attributes
    ----------
    term : UserTerm
        As it was given.
    kept : bool
        Whether it is part of the result.
    gain : float
        Share of the weighted squared error of a held-out block that it removes, geometric mean over the blocks; NaN
        where it was not asked.
    deviation : float
        Standard deviation of the gain, from its scatter over the blocks.
    body_log_odds : float
        Logarithm of the odds, by the prior of bodies and drives alone, of what is found of them with the term over what
        is found without it: high where the bodies would have to make its torque. NaN where it was not asked.
    """

    term: UserTerm
    kept: bool
    gain: float = float("nan")
    deviation: float = float("nan")
    body_log_odds: float = float("nan")
