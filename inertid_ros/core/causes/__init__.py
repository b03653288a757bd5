"""Causes of bad results: symptom, meaning and remedy, in one table that messages and documentation are made from.

- ``cause``: :class:`~.cause.Cause`.
- ``of_recordings``, ``of_results``: the causes, by the symptom that a user sees.
- ``table``: all of them, and :func:`~.table.remedy_for`, the remedy of a message.
"""
