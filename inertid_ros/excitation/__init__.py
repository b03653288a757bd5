"""Exciting motions for identification: planned within the robot's limits, checked, and executed safely."""
