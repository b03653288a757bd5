"""What a motion keeps beside the limits of its joints, and the proof that it does; see :mod:`.constraint`."""
