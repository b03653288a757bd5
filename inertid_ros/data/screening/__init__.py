"""Checks of recordings for faults and contradictions, before parameters are fitted to them.

| module | looks at | called by |
|---|---|---|
| `stamp_checks` | stamps; velocity against the change of position (`velocity_ratio`, signed) | `channel_checks` |
| `channel_checks` | raw channels against the URDF: units, limits, zeros, held joints | `calibration/dataset.py` |
| `channel_faults` | single raw channels: spikes, held and lost values, saturation | `data/preparation` |
| `motion_checks` | prepared samples: enough motion, and new motion for validation | `calibration/calibrate.py` |
| `effort_checks` | prepared samples: efforts against the URDF (`effort_hypotheses`) | `calibration/dataset.py` |
| `recording_health` | faults as figures, for reports | `report` |
| `live_watch` | live messages: rates, gaps, clocks | nodes |
"""
