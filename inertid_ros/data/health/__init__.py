"""Health of recorded data, for reports: figures of what screening and cleaning judge.

- ``recording_health``: stamps and channels of one recording.
- ``recording_content``: channels, length, steps and ranges, as ``inertid info`` shows them.
- ``effort_spectrum``: where motion and noise of the efforts lie, beside the cutoff.

It may import ``preparation`` and the folders before it.
"""
