"""Bags as files and serialised messages, below what makes recordings of them.

- ``bag_backends``: what is needed of a library; ``rosbag2_backend`` is ``rosbag2_py``, used where ROS 2 provides it,
  ``rosbags_backend`` is ``rosbags``, used elsewhere. Both are optional and imported where a bag is opened.
- ``storage_checks``: what the files of a bag declare, before a library opens them.
- ``mcap_format``, ``bag_metadata``: the two files of a bag that is written live.
- ``mcap_recovery``: messages of an MCAP file that was not closed or is damaged.
"""
