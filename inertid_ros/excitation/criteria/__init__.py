"""Criteria: how much a motion tells of the parameters."""
