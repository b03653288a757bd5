"""The prior: normalised coordinates, regularizers, hard constraints, and the convex program that they make."""
