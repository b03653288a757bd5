"""Command line ``inertid``: one module per command; arguments in, library calls, text or JSON out.

- ``main``: arguments, exit status, signals.
- ``identify``, ``excite``, ``validate``, ``convert``, ``info``, ``report``, ``perturb``: the commands.
- ``excite_floating``: ``excite`` for free-floating robots.
- ``settings``: logging and configuration from arguments.
- ``output``: JSON, tables, progress and files.
- ``report_tables``, ``motion_output``: results and motions as text.

It may import all but ``ros`` and ``nodes``.
"""
