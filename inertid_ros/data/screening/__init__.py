"""Checks that a recording is plausible, before parameters are fitted to it.

* ``stamp_checks``: stamps, and velocity against the change of position (``velocity_ratio``, signed)
* ``channel_checks``: raw channels against the URDF: units, limits, zeros, held joints; before preparation
* ``channel_faults``: single raw channels: spikes, held and lost values, saturation; during preparation
* ``motion_checks``: prepared samples: enough motion, and new motion for validation
* ``effort_checks``: prepared samples: efforts against the URDF, by the hypotheses of ``effort_hypotheses``
* ``recording_health``: faults as figures, for reports
* ``live_watch``: live messages: rates, gaps, clocks

``calibration/dataset.py`` and ``calibration/calibrate.py`` run the checks before the fit; ``data/preparation`` calls
``stamp_checks`` and ``channel_faults``, and nodes call ``live_watch``.
"""
