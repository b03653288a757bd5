"""A message about a robot is logged once, however often the robot is loaded or planned for."""

import logging
from functools import lru_cache

_log = logging.getLogger(__package__.partition(".")[0])


@lru_cache(maxsize=256)
def log_once(level: int, message: str) -> None:
    """Log a message the first time that it comes up in this process."""
    _log.log(level, "%s", message)
