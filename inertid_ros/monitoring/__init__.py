"""Joint states as they come: parameters that follow a robot, changes told from noise, and coverage while it moves."""
