"""All readers of content from outside."""

import importlib.util

from .archives import archive_targets
from .bags import bag_targets
from .results import result_targets
from .tables import table_targets
from .target import Target
from .texts import text_targets


def targets() -> list[Target]:
    """Every target, by kind; those of messages where ROS is installed."""
    found = [*text_targets(), *archive_targets(), *bag_targets(), *table_targets(), *result_targets()]
    if importlib.util.find_spec("rclpy"):
        from .messages import message_targets

        found += message_targets()
    return found
