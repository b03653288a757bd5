"""The boundary to ROS 2: messages, topics, parameters and diagnostics. It imports no node and not ``cli``."""

from .subscriber import ParameterSubscriber

__all__ = ["ParameterSubscriber"]
