"""Evaluation of live joint states: parameters that follow a robot, detection of changes, and coverage of a motion."""
