"""Checks of whether a recording can be what it claims to be, before anything is fitted to it.

- ``screen``: findings on the channels of a recording before they are prepared, and what is refused.
- ``stamp_checks``: the unit of the stamps.
- ``position_checks``: units and zeros of positions, and joints that were said to be locked.
- ``efforts/``: whether efforts are those of this robot on this motion.
- ``effort_noise``: noise of the efforts, from what lies above the motion.
- ``motion_checks``: length and richness of the motion of all recordings together.
- ``sensor_faults``: saturated channels and wrenches that repeat themselves.
- ``transients``: start-up and stopping jerks at the ends of a recording.
- ``wrench_checks``: signs, slipping feet and exchanged plates, by the robot's weight and motion.
- ``repeated_motion``: held-out recordings of samples or of a motion that was fitted.
- ``momentum_checks``: conservation of momentum, and whether pose and twist of the base agree.

Samples are masked with a notice where a fault is local; a recording that contradicts itself is refused with a
:class:`~inertid_ros.core.errors.RecordingError`. What the checks of a robot's recordings see is a
:class:`~inertid_ros.core.findings.Finding` each. Imports the files of :mod:`inertid_ros.data`, ``config``, ``robot``,
``kinematics`` and ``dynamics``, nothing of ``preparation``.
"""
