"""The boundary to ROS 2: messages, topics, parameters and diagnostics. It does not import ``nodes`` or ``cli``."""

from .subscriber import ParameterSubscriber

__all__ = ["ParameterSubscriber"]
