"""Files to try the guides with, where no robot is at hand.

- ``arm_urdf``: a small arm.
- ``recordings``: recordings of it, of it on a satellite, and of a biped on force plates; a command of its own.
"""
