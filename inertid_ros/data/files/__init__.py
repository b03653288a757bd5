"""Recordings in files.

- ``loading``: a recording from whatever file it is in, by its content.
- ``npz``: NumPy's ``.npz``, in and out.
- ``bag_reading``, ``bag_writing``: rosbag2 bags, MCAP or SQLite, to recordings and back; ``bag_messages`` puts what was
  read in order and together.
- ``bag_parts``: consecutive parts of a long bag, one at a time.
- ``bag_playback``: messages of a bag at the times at which they were recorded.
- ``live_bag``: a bag that is complete at every moment, written while the robot moves.

Bags are opened by :mod:`inertid_ros.data.bag_storage`, and read by :mod:`inertid_ros.data.columns` where they can be.
"""
