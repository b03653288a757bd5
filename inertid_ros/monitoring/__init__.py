"""Evaluation of live joint states: online identification, changes of the robot, payload, and coverage of a motion."""
