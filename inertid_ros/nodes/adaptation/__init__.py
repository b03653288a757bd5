"""The adaptation node: an arm that follows a reference by torques while its parameters adapt.

- ``node``: lifecycle, topics and the tick.
- ``arm_interface``: what is received from the robot, and the efforts that are sent.
- ``parameters``, ``diagnostics``: of the node.

What is commanded is decided by :mod:`inertid_ros.adaptation.execution`.
"""
