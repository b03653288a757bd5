"""Checks of whether a recording can be what it claims to be, before anything is fitted to it."""
