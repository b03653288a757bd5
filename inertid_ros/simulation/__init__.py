"""Robots in simulation in place of hardware: arms and legged robots in MuJoCo, and free-floating robots."""
