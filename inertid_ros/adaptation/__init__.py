"""Parameters that change: payloads, identified with a calibrated robot as prior.

- ``payload``: mass, centre of mass and inertia of what a robot holds, with intervals.
- ``payload_equations``: equations of the payload alone, the robot's uncertainty and drift of friction marginalised out.
- ``payload_posterior``: physically consistent bodies that these equations leave possible.
- ``payload_checks``: whether a recording shows a payload, and whether the robot can hold it.
- ``tool_frame``: the frame in which a payload is expressed.
"""
