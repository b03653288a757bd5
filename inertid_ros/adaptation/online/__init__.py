"""A robot that is followed while it moves.

- ``followed_robot``: joint states to parameters and changes.
- ``stream_checks``: which joint states are new and possible, and what is wrong with the others.
- ``causal_filter``: joint states as they come, to samples of a known time ago.
- ``online_identification``, ``online_information``, ``warm_newton``: parameters that follow a robot.
- ``change_detector``, ``innovation_noise``: a payload, a lost part or rising friction, told from noise.
- ``change_history``: what is to be told of changes.
"""
