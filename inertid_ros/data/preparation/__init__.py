"""From recordings to :class:`~inertid_ros.core.samples.Samples`: channels, motion and masks.

- ``prepare``: samples for equations of any type; the entry of this folder.
- ``force_samples``, ``momentum_samples``: for equations of joint torques and base wrench, and of momentum.
- ``segment_samples``: from body segments whose motion is measured in the world.
- ``recorded_channels``: the channels that equations need, in the order of the model.
- ``shared_by_parts``: what the parts of one long recording share, so that each is prepared as the whole would be.
- ``filtered_motion``: motion and forces of one piece, filtered alike.
- ``free_base``: motion of a free base from pose, twist, inertial measurement unit or measured acceleration.
- ``dead_reckoning``: poses integrated from twists.
- ``external_wrenches``: measured wrenches by contact.
- ``friction_direction``: where drives slide, so that their friction has a direction.

Imports the files of :mod:`inertid_ros.data`, its folders ``screening``, ``cleaning`` and ``filtering``, and what is
below ``data``.
"""
