"""Equations that are linear in the parameters, from motion."""
