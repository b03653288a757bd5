"""Motion to equations that are linear in the parameters."""
