"""From channels at their stamps to even, low-passed ones: gaps, jitter, cutoff and derivatives.

- ``resampling``: stamps with jitter to even ones, in pieces between the gaps.
- ``filters``, ``filter_settings``: zero-phase low-pass and derivatives; checked cutoff, gaps, stride and edges.
- ``bandwidth``: where motion ends and noise begins, over all recordings, and the automatic cutoff between.

Imports what is below ``data``.
"""
