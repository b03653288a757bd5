"""What a motion keeps besides the limits of its joints, and the proof that it does; see :mod:`.constraint`."""
