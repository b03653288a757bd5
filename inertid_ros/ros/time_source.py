"""A repair of rclpy's source of simulated time."""

from typing import Any

from rclpy.time_source import TimeSource
from rosgraph_msgs.msg import Clock

from .conversions import NANOSECONDS

# Stamps end at 2**31 s. A node adds to the present time what it does next, and a stamp too late is an error of its own.
_LATEST_S = 2**31 - 366 * 86400


def ignore_impossible_times() -> None:
    """Leave out what ``/clock`` says and no stamp can hold, for all nodes of this process; the time of before stays.

    rclpy raises in its callback instead, which ends the node: whoever publishes one time before 1970 would end all
    nodes with ``use_sim_time``, in motion too.
    """
    received: Any = TimeSource.clock_callback
    if hasattr(received, "ignores_impossible_times"):
        return

    def guarded(self: TimeSource, message: Clock) -> None:
        if 0 <= message.clock.sec < _LATEST_S and message.clock.nanosec < NANOSECONDS:
            received(self, message)
            return
        node: Any = self._get_node()
        if node is not None:
            node.get_logger().warning(
                f"/clock says {message.clock.sec} s and {message.clock.nanosec} ns, which is no time, and is left out;"
                " check who publishes it (ros2 topic info -v /clock)",
                once=True,
            )

    guarded.ignores_impossible_times = True  # type: ignore[attr-defined]
    TimeSource.clock_callback = guarded
