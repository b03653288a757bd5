"""information."""
