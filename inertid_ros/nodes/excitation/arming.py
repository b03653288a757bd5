"""Arming: whether motions may begin, without ROS."""

from collections.abc import Callable
from enum import Enum


class ArmingState(Enum):
    """Whether motions may begin."""

    UNARMED = "unarmed"
    READY = "ready"
    PLANNING = "planning"  # a goal is active; nothing moves yet
    LATCHED = "latched"  # stopped by a fault, until disarmed and armed again


class Arming:
    """The arming of the excitation node: a fault latches, and only disarming and arming again ends that.

    Parameters
    ----------
    on_change : callable
        Called after every call that may have changed the state.

    Attributes
    ----------
    state : ArmingState
    message : str
        One line about the state.
    last_fault : str
        The last that latched, also once it is armed again; empty while there was none.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.state, self.message, self.last_fault = ArmingState.UNARMED, "not configured", ""
        self._on_change = on_change

    @property
    def objection(self) -> str:
        """Why no motion may begin; empty where one may."""
        if self.state is ArmingState.UNARMED:
            return f"excitation is not armed ({self.message})"
        return self.message if self.state is ArmingState.LATCHED else ""

    @property
    def is_armed(self) -> bool:
        """Whether a motion may begin or goes on, or a fault waits to be looked at."""
        return self.state is not ArmingState.UNARMED

    def arm(self) -> None:
        """Allow motions, also after a fault."""
        self._set(ArmingState.READY, "armed")

    def disarm(self, message: str) -> None:
        """Allow no motion."""
        self._set(ArmingState.UNARMED, message)

    def change(self, state: ArmingState, message: str) -> None:
        """Enter a state, unless unarmed or latched: only disarming and arming change that."""
        if self.state is ArmingState.UNARMED:
            return
        if self.state is ArmingState.LATCHED:
            state, message = self.state, self.message
        self._set(state, message)

    def _set(self, state: ArmingState, message: str) -> None:
        self.state, self.message = state, message
        if state is ArmingState.LATCHED:
            self.last_fault = message
        self._on_change()
