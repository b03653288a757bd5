"""Parameters that change: payloads, a robot that is followed while it moves, and control that adapts.

Folders:

- ``payload``: mass, centre of mass and inertia of what a robot holds.
- ``online``: joint states as they come, parameters that follow them, and changes told from noise.
- ``control``: natural steps of parameters, and controllers that adapt by them.
- ``execution``: an arm under such control: its reference, watch and stops. It imports ``control``.

Files:

- ``calibrated_robot``: a robot as its calibration left it, and how far its friction may have drifted since.
"""
