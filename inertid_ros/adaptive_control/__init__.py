"""Torque control of an arm with adapting parameters, without ROS and without a clock: the caller gives all times."""
