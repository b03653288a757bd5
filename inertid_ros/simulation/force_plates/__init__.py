"""Robots that stand on force plates: description, ground, balance, sensors."""
