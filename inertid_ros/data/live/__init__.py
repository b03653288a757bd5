"""Recordings that are made or received while the robot moves.

- ``live_recording``: what is accepted, counted, synchronised and written to a crash-safe bag.
- ``wrench_watch``: zero and load of live wrench topics.
- ``batches``: numbered batches of samples, and which received recordings are complete.

Imports the files of :mod:`inertid_ros.data` and ``data/files``; nothing of ROS.
"""
