"""Constraints: what a motion must keep, and the proof that it does."""
