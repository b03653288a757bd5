"""Parameters that change: payloads, and a robot that is followed while it moves.

- ``payload``: mass, centre of mass and inertia of what a robot holds, with intervals.
- ``payload_equations``: equations of the payload alone, the robot's uncertainty and drift of friction marginalised out.
- ``payload_posterior``: physically consistent bodies that these equations leave possible.
- ``payload_checks``: whether a recording shows a payload, and whether the robot can hold it.
- ``tool_frame``: the frame in which a payload is expressed.
- ``causal_filter``: joint states as they come, to samples of a known time ago.
- ``online_identification``, ``online_information``, ``warm_newton``: parameters that follow a robot.
- ``inertial_manifold``, ``adaptive_control``: natural steps of parameters, and controllers that adapt by them.
- ``change_detector``, ``innovation_noise``: a payload, a lost part or rising friction, told from noise.
"""
