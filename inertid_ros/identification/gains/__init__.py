"""Gains of the drives, which known loads tell.

- ``drive_gains``: the gain of every joint with its interval; the entry point.
- ``gain_fit``: least squares of reported efforts by parameters and gains at once, and its jackknife.
- ``load_centres``: whether the loads act where they were declared.

It may import ``assessment`` and the rooms below it.
"""
