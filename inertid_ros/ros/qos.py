"""Quality of service: the few profiles that every node of this package uses."""

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from inertid_ros.core.errors import InertidError

LATCHED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""A late subscriber still receives the last message; on both ends."""

COMMAND = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)
"""Only the newest command counts: after a pause no old ones may come in a burst."""

STATE = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=20,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""Sensor values; matches reliable and best-effort publishers alike. A short delay here loses none."""

BATCH = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1000,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""Recorded batches: none may be lost, and an identifier that restarts receives them again."""


def recording_profile(reliability: str, depth: int = 1000) -> QoSProfile:
    """Deep queue for topics that are recorded; ``reliability`` is ``reliable`` or ``best_effort``.

    Raises
    ------
    InertidError
        Unknown reliability.
    """
    policies = {"reliable": ReliabilityPolicy.RELIABLE, "best_effort": ReliabilityPolicy.BEST_EFFORT}
    if reliability not in policies:
        raise InertidError(f"reliability '{reliability}' is unknown; use one of {list(policies)}")
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=policies[reliability])
