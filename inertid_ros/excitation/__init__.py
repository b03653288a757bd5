"""Motions that identify: planned within limits, executed so that the robot always ends at rest."""
