"""Replay of a bag's topics and clock, where there is no ``ros2 bag play``: ``node`` and its ``parameters``."""
