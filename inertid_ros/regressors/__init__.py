"""Motion to linear equations in the parameters."""
