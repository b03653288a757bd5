"""The boundary to ROS 2: messages, topics, parameters, diagnostics. Modules here do not import ``nodes`` or ``cli``."""

from .received_parameters import ParameterSubscriber

__all__ = ["ParameterSubscriber"]
