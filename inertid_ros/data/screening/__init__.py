"""Checks of whether a recording can be what it claims to be, before anything is fitted to it.

- ``sensor_faults``: saturated channels and wrenches that repeat themselves.
- ``transients``: start-up and stopping jerks at the ends of a recording.
- ``wrench_checks``: signs, slipping feet and exchanged plates, by the robot's weight and motion.
- ``momentum_checks``: conservation of momentum, and whether pose and twist of the base agree.

Samples are masked with a notice where a fault is local; a recording that contradicts itself is refused with a
:class:`~inertid_ros.core.errors.RecordingError`. Imports the files of :mod:`inertid_ros.data`, ``config``, ``robot``,
``kinematics`` and ``dynamics``, nothing of ``preparation``.
"""
