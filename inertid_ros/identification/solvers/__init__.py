"""The MAP problem: normalised coordinates, regularizers and constraints as a convex program, and its solvers."""
