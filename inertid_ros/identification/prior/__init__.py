"""prior."""
