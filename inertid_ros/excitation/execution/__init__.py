"""Execution of a plan: sent to the controller horizon by horizon, monitored, and stopped safely. No ROS, no clock."""
