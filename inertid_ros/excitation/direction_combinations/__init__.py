"""Excitation by direction combinations: cycloidal intervals in each of which every joint moves one way (B §5)."""
