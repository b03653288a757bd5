"""Output of the commands.

- ``output``: JSON, tables, progress and files.
- ``report_tables``, ``motion_output``: results and motions as text and files.
"""
