"""Legged robots on force plates.

- ``soles``: soles of the feet, and the plates below them.
- ``exoskeleton``: a biped with published inertial parameters.
- ``catalogue``: legged robots by name.
- ``world``: the MuJoCo world of robot and plates.
- ``movement``: random reference movements.
- ``whole_body_control``: torques that follow a reference in balance.
- ``body_sensors``: sensors of robot and plates.
- ``legged_robot``: all of these together.
- ``movement_recording``: movements recorded without ROS.
"""
