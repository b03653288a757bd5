"""A MuJoCo robot that stands in for hardware: friction, sensor noise, controller, faults."""
