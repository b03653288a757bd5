"""Simulated robots instead of hardware: arms and legged robots in MuJoCo, and free-floating robots."""
