"""Torque control of an arm with parameters that adapt. No ROS, no clock: times are given by the caller."""
