"""SpeedScaling: by how much the controller slows trajectories down, where the robot's driver or controller says so."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Float64

from inertid_ros.ros.polling import PolledSubscription
from inertid_ros.ros.qos import NEWEST, STATE

from .parameters import SpeedScalingOptions

_PERIOD_S = 0.02  # between two states of the controller that are read; it publishes every cycle


class SpeedScaling:
    """The newest speed scaling of each source.

    Parameters
    ----------
    node : Node
    options : SpeedScalingOptions
    controller : str
        Name of the controller, whose state is read where control_msgs is installed; empty where it is not known.
    on_change : callable
        Called with every factor that is received, 1 at full speed.
    """

    def __init__(
        self,
        node: Node,
        options: SpeedScalingOptions,
        controller: str,
        on_change: Callable[[float], None],
    ) -> None:
        self._factors: dict[str, float] = {}
        self._on_change, self._polled_at = on_change, -float("inf")
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
            self._take("controller", state.speed_scaling_factor)

    @property
    def factor(self) -> float:
        """That of the source that slows down most; 1 where none has told of any."""
        return min(self._factors.values(), default=1.0)

    def _take(self, source: str, factor: float) -> None:
        self._factors[source] = factor
        self._on_change(self.factor)


def _controller_state_type() -> Any:
    """Type of the controller's state, None where control_msgs is absent or older than speed scaling."""
    try:
        from control_msgs.msg import JointTrajectoryControllerState
    except ImportError:
        return None
    known = JointTrajectoryControllerState.get_fields_and_field_types()
    return JointTrajectoryControllerState if "speed_scaling_factor" in known else None
