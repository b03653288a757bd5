"""What a calibrated robot holds: mass, centre of mass and inertia with intervals."""
