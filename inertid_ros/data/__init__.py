"""What was measured, from messages and files to samples.

- ``recording``: the raw channels of one experiment, exactly as they were measured.
- ``long_recording``: a recording that is too long for memory: some parts, and a way to read the others.
- ``part_context``: parts of a recording with the ends of their neighbours, which filters remember.
- ``blocks``: synchronised samples, as they go from the recorder to the identifier, and a recording of them.
- ``channel_stream``: stamped values of one channel, interpolated at the stamps of another.
- ``assembly``: messages, live or from a bag, to synchronised samples.
- ``messages``: types of the messages that make a recording, and messages of wrenches and base motion as arrays.
- ``stamp_order``: stamps put in order, without repeats and those of another clock.
- ``files/``: recordings in files: npz, bags in and out, crash-safe bags, recovery, playback.
- ``live/``: what a recorder accepts while the robot moves, and recordings that arrive in batches.
- ``screening/``: sensor faults, and recordings that contradict themselves.
- ``cleaning/``: channels without spikes, lost and held values, and turns of encoders.
- ``filtering/``: channels at their stamps to even, low-passed ones and their derivatives.
- ``preparation/``: from a recording to :class:`~inertid_ros.core.samples.Samples`.
- ``health/``: gaps, jitter, spikes, saturation and spectra of recordings, for reports.

Imports ``core``, ``config``, ``robot``, ``kinematics`` and ``dynamics``. Inside, ``files``, ``live`` and ``screening``
import the files here, ``cleaning`` also ``screening``, ``preparation`` both and ``filtering``, and ``health`` all.
Nothing of ROS is imported at module level.
"""
