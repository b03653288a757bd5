"""Command line ``inertid``: one module per command; arguments in, library calls, text or JSON out.

- ``main``: arguments, exit status, signals.
- ``init``, ``identify``, ``excite``, ``validate``, ``payload``, ``convert``, ``info``, ``report``, ``perturb``: the commands.
- ``motions``: what ``excite`` does with motions.
- ``settings``: logging and configuration from arguments.
- ``output``: JSON, tables, progress and files.
- ``report_tables``: results as text.

It may import all but ``ros`` and ``nodes``.
"""
