"""What a calibrated robot holds, with intervals.

- ``payload``: mass, centre of mass and inertia of what a robot holds.
- ``equations``: equations of the payload alone, the robot's uncertainty and drift of friction marginalised out.
- ``posterior``: physically consistent bodies that these equations leave possible.
- ``checks``: whether a recording shows a payload, and whether the robot can hold it.
- ``tool_frame``: the frame in which a payload is expressed.
"""
