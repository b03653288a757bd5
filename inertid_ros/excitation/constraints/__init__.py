"""Constraints on a motion in addition to joint limits, and the proof of them; see :mod:`.constraint`."""
