"""JSON Schemas of the files that the package writes, as data of the package.

- ``schema_files``: their names and contents.
"""
