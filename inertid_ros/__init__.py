"""Dynamic calibration of robots in ROS 2: physically consistent inertial parameters."""

__version__ = "0.1.0"
