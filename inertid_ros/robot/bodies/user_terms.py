"""User terms: torque of a joint that a configuration adds, linear in unknowns, such as that of a counterbalance."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from inertid_ros.config.robot import TERM_SIGNALS
from inertid_ros.core.expressions import Expression


@dataclass(frozen=True)
class UserTerm:
    """Torque ``sum_i x_i f_i(q, v, a)`` on one joint, with unknown ``x`` and known ``f``.

    Attributes
    ----------
    name : str
        Of its parameters, such as ``counterbalance.sin(q)``.
    joint : str
        On which it acts.
    expressions : tuple of str
        ``k`` formulas of :data:`~inertid_ros.config.robot.TERM_SIGNALS`, see :class:`.Expression`.
    non_negative : bool
        Whether its parameters cannot be below zero, as those of friction.
    values : tuple of float
        ``k`` values where they are known; empty where they are identified.
    always : bool
        Whether it stays where held-out data do not ask for it.
    """

    name: str
    joint: str
    expressions: tuple[str, ...]
    non_negative: bool = False
    values: tuple[float, ...] = ()
    always: bool = False

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """``k`` names of its parameters."""
        return tuple(f"{self.name}.{expression}" for expression in self.expressions)

    @cached_property
    def formulas(self) -> tuple[Expression, ...]:
        """The expressions, parsed."""
        return tuple(Expression(text, TERM_SIGNALS) for text in self.expressions)

    @property
    def uses_load(self) -> bool:
        """Whether a formula depends on the torque of the bodies."""
        return any(signal == "load" for formula in self.formulas for signal, _ in formula.used)


def misnamed(terms: Sequence[UserTerm], joints: Sequence[str]) -> str:
    """What is wrong with the joints that terms name, as a clause; empty where nothing is."""
    for term in terms:
        named = {term.joint, *(joint for formula in term.formulas for _, joint in formula.used if joint)}
        unknown = sorted(named - set(joints))
        if unknown:
            return f"term '{term.name}': joint '{unknown[0]}' does not exist; the robot has {tuple(joints)}"
    return ""
