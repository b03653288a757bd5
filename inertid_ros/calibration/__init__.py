"""Use cases that commands and nodes share: set up a robot, plan, calibrate, validate, predict."""
