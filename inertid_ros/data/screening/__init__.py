"""Checks of whether a recording can be what it claims to be, before anything is fitted to it.

* ``stamp_checks``: stamps, and velocity against the change of position (``velocity_ratio``, signed)
* ``channel_checks``: raw channels against the URDF: units, limits, zeros, held joints; before preparation
* ``channel_faults``: single raw channels: spikes, held and lost values, saturation; during preparation
* ``motion_checks``: prepared samples: enough motion, and new motion for validation
* ``effort_checks``: prepared samples: efforts against the URDF, by the hypotheses of ``effort_hypotheses``
* ``recording_health``: faults as figures, for reports
* ``live_watch``: live messages: rates, gaps, clocks

``calibration/dataset.py`` and ``calibration/calibrate.py`` call them.
"""
