"""Checks of whether a recording can be what it claims to be, before anything is fitted to it.

| module | looks at | called by |
|---|---|---|
| `stamp_checks` | stamps; velocity against the change of position (`velocity_ratio`, signed) | `channel_checks` |
| `channel_checks` | raw channels against the URDF: units, limits, zeros, held joints | `calibration/dataset.py` |
| `channel_faults` | raw channels by themselves: spikes, held and lost values, saturation | `data/preparation` |
| `motion_checks` | prepared samples: enough motion, and another one for validation | `calibration/calibrate.py` |
| `effort_checks` | prepared samples: efforts against the URDF (`effort_hypotheses`) | `calibration/calibrate.py` |
| `recording_health` | the same faults as figures, for reports | `report` |
| `live_watch` | messages as they come: rates, gaps, clocks | nodes |
"""
