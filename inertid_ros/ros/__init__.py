"""ROS 2 boundary: messages, quality of service, parameters, frames."""

from .subscriber import ParameterSubscriber

__all__ = ["ParameterSubscriber"]
