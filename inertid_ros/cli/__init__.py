"""Command line ``inertid``: one module per command; arguments in, library calls, text or JSON out."""
