"""bags."""
