"""Execution of a plan: handed to the controller horizon by horizon, monitored, and stopped safely. No ROS, no clock.

- ``plan_check``: what must hold before a plan moves a robot, and the approach to its start.
- ``brake``: a verified brake along the path for every phase of a plan.
- ``horizons``: what is sent at each phase of a plan.
- ``motion_execution``: the state of one execution: phase, brake, rest.
- ``robot_clock``: the robot's clock, estimated from the stamps of its states.
- ``monitor``: whether the joint states, and the client's lease, still allow the motion.
- ``drive_response``: how far drives usually are behind their command, learned from the motion.
- ``path_progress``: whether the controller keeps up, or its speed is scaled.
- ``standstill``: where a robot stands, and since when.
- ``execution_progress``: how far an execution has come.
- ``supervisor``: execution and monitor together; what is sent at every tick.
"""
