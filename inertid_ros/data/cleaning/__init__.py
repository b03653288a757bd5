"""Raw channels without what no sensor measured: spikes, lost values, held values, wrapped angles.

- ``spikes``: single values far off their neighbours, by a Hampel filter.
- ``channel_noise``: noise of channels, and what normal noise hardly exceeds.
- ``lost_values``: values that are not finite, drops to zero, and values that were held until the channel caught up.
- ``wrapped_angles``: jumps by a full turn.
- ``clean``: channels with all such values replaced, where they were, and findings about them; the entry of this folder.

Imports the files of :mod:`inertid_ros.data` and its folder ``screening``, and what is below ``data``.
"""
