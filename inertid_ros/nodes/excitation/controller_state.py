"""ControllerState: how far the controller has come, and by how much it slows trajectories down, as far as it tells."""

from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64

from inertid_ros.core.arrays import Array
from inertid_ros.ros.conversions import NANOSECONDS, to_nanoseconds
from inertid_ros.ros.polling import PolledSubscription
from inertid_ros.ros.qos import NEWEST, STATE

from .parameters import SpeedScalingOptions

_PERIOD_S = 0.02  # between two states of the controller that are read; it publishes every cycle


class ControllerState:
    """The controller's reference, and the newest speed scaling of each source.

    Parameters
    ----------
    node : Node
    options : SpeedScalingOptions
    controller : str
        Name of the controller, whose state is read where control_msgs is installed; empty where it is not known.
    on_scaling : callable
        Called with every factor that is received, 1 at full speed.
    on_reference : callable
        Called with stamp [s], names of joints and position [rad or m] of each reference of the controller that is read.
    """

    def __init__(
        self,
        node: Node,
        options: SpeedScalingOptions,
        controller: str,
        on_scaling: Callable[[float], None],
        on_reference: Callable[[float, tuple[str, ...], Array], None],
    ) -> None:
        self._factors: dict[str, float] = {}
        self._on_scaling, self._on_reference = on_scaling, on_reference
        self._polled_at = -float("inf")
        self._state: PolledSubscription | None = None
        if options.topic:
            full = options.full
            node.create_subscription(Float64, options.topic, lambda told: self._take("driver", told.data / full), STATE)
        state_type = _controller_state_type()
        if controller and state_type is not None:
            self._state = PolledSubscription(node, state_type, f"{controller}/controller_state", NEWEST)

    def poll(self, now: float, at_once: bool = False) -> None:
        """Read the controller's newest state; to be called at every tick.

        Parameters
        ----------
        now : float
            Steady clock [s].
        at_once : bool
            Before a horizon is sent: a robot that is slowed down by now would jump to it.
        """
        if self._state is None or now - self._polled_at < _PERIOD_S and not at_once:
            return
        self._polled_at = now
        for state, _received in self._state.take():
            self._take("controller", getattr(state, "speed_scaling_factor", 1.0))
            reference = getattr(state, "reference", None)  # older messages have none
            if reference is not None and len(reference.positions) == len(state.joint_names):
                stamp = to_nanoseconds(state.header.stamp) / NANOSECONDS
                self._on_reference(stamp, tuple(state.joint_names), np.asarray(reference.positions))

    @property
    def factor(self) -> float:
        """That of the source that slows down most; 1 where none has told of any."""
        return min(self._factors.values(), default=1.0)

    def _take(self, source: str, factor: float) -> None:
        self._factors[source] = factor
        self._on_scaling(self.factor)


def _controller_state_type() -> Any:
    """Type of the controller's state, None where control_msgs is absent."""
    try:
        from control_msgs.msg import JointTrajectoryControllerState
    except ImportError:
        return None
    return JointTrajectoryControllerState
