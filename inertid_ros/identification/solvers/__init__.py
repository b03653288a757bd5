"""Solvers of the MAP problem."""
