"""Execution of a plan: send horizons to the controller, monitor, and stop safely. Without ROS or a clock."""
