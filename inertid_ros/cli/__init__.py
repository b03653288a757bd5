"""Command line ``inertid``: one module per command; arguments in, library calls, text or JSON out.

- ``main``: arguments, exit status, signals.
- ``init``, ``identify``, ``excite``, ``validate``, ``payload``, ``fleet``, ``convert``, ``info``, ``report``,
  ``perturb``: the commands; ``excite_floating`` is that of free-floating robots.
- ``settings``: logging and configuration from arguments.
- ``printing``: JSON, tables, progress and files.

It may import all but ``ros`` and ``nodes``.
"""
