"""identifier."""
