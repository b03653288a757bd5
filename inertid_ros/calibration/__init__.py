"""The use cases of the main path, which commands and nodes share: set a robot up, plan, calibrate, validate."""
