"""Recordings that are made or received while the robot moves.

- ``live_recording``: what is accepted, counted, synchronised and written to a crash-safe bag.
- ``clock_difference``: how far a clock is ahead of the steady one, whatever interrupts its reading.
- ``stream_watch``: rate, gaps, delay and saturation of a topic in the last seconds, for diagnostics.
- ``wrench_watch``: zero and load of live wrench topics.
- ``batches``: numbered batches of samples, and which received recordings are complete.

Imports the files of :mod:`inertid_ros.data`, ``data/files`` and ``data/screening``; nothing of ROS.
"""
