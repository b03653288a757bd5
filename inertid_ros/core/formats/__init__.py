"""Formats of files from outside, read in bounded time and memory whatever they hold.

- ``yaml_text``: YAML without objects, recursion and expansion; ``json_text``: JSON likewise.
- ``npz_archive``: arrays of NumPy's ``.npz`` whose sizes are known before they are read.
- ``budget``: how far a compressed file may expand.
"""
