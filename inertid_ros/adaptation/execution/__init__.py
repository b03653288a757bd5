"""An arm under adaptive control: its reference, watch, and stops. No ROS, no clock; times are given by the caller.

- ``reference_trajectory``: whether a trajectory that somebody sends may be followed from where the reference is.
- ``reference_motion``: the reference: at rest, along a trajectory, or braking on it.
- ``torque_transition``: torque that begins where another one ended.
- ``effort_watch``: whether the arm moves as an arm under torque control may.
- ``controlled_arm``: all of these together: what is commanded at every tick.
"""
