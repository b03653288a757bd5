"""Execution: a plan handed to the controller piece by piece, watched, and stopped safely."""
