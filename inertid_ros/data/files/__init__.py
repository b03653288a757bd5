"""Recordings in files.

- ``loading``: a recording from whatever file it is in, by its content.
- ``npz``: NumPy's ``.npz``, in and out.
- ``bag_reading``, ``bag_writing``: rosbag2 bags, MCAP or SQLite, to recordings and back; ``bag_messages`` puts what was
  read in order and together.
- ``bag_playback``: messages of a bag at the times at which they were recorded.
- ``bag_backends``: what these need of a library; ``rosbag2_backend`` is ``rosbag2_py``, used where ROS 2 provides it,
  ``rosbags_backend`` is ``rosbags``, used elsewhere.
- ``live_bag``: a bag that is complete at every moment, written while the robot moves; ``mcap_format`` and
  ``bag_metadata`` encode its two files.
- ``storage_checks``: what the files of a bag declare, before a library opens them.
- ``mcap_recovery``: messages of an MCAP file that was not closed or is damaged.

Imports the files of :mod:`inertid_ros.data`. Libraries for bags are optional and are imported where a bag is opened.
"""
