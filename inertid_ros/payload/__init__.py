"""Payload of a calibrated robot: mass, centre of mass and inertia with intervals."""
