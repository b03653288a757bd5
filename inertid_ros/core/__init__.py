"""Basics of all other packages: arrays, errors, findings, file formats, atomic outputs, worker processes."""
