"""One module per command of ``inertid``: arguments in, library calls, text or JSON out."""
