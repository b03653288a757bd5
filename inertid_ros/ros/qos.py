"""Quality of service: the few profiles that every node of this package uses."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""A late subscriber still receives the last message; on both ends."""

COMMAND = QoSProfile(depth=1)
"""Only the newest command counts: after a pause no old ones may come in a burst."""

STATE = QoSProfile(depth=20, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Sensor values; matches reliable and best-effort publishers alike. A short delay here loses none."""

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Values of which only the last one is read."""

BATCH = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Recorded batches: none may be lost, and an identifier that restarts receives them again."""


def recording_profile(reliability: str) -> QoSProfile:
    """Deep queue for topics that are recorded; ``reliability`` is ``reliable`` or ``best_effort``."""
    return QoSProfile(depth=1000, reliability=ReliabilityPolicy[reliability.upper()])
