"""From recordings to :class:`~inertid_ros.core.samples.Samples`: clocks, gaps, filters, derivatives and masks.

- ``prepare``: samples for equations of any type; the entry of this folder.
- ``force_samples``, ``momentum_samples``: for equations of joint torques and base wrench, and of momentum.
- ``segment_samples``: from body segments whose motion is measured in the world.
- ``recorded_channels``: the channels that equations need, in the order of the model.
- ``resampling``: stamps with jitter to even ones, in pieces between the gaps.
- ``filters``, ``filter_settings``: zero-phase low-pass and derivatives; checked cutoff, gaps, stride and edges.
- ``bandwidth``: where motion ends and noise begins, over all recordings, and the automatic cutoff between.
- ``filtered_motion``: motion and forces of one piece, filtered alike.
- ``free_base``: motion of a free base from pose, twist, inertial measurement unit or measured acceleration.
- ``dead_reckoning``: poses integrated from twists.
- ``external_wrenches``: measured wrenches by contact.
- ``friction_direction``: where drives slide, so that their friction has a direction.

Imports the files of :mod:`inertid_ros.data`, its folders ``screening`` and ``cleaning``, and what is below ``data``.
"""
