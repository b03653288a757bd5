"""Use cases that commands and nodes share. May import everything but ``cli``, ``ros`` and ``nodes``.

- ``calibrate_offline``: recordings in, outcome with validation and provenance out.
- ``screened_samples``: recordings that are screened, and their samples with all findings; samples of long
  recordings, part by part.
- ``identification_job``: the identifier node's work, for a worker process.
- ``excitation_job``: the excitation node's planning, for a worker process.
- ``earlier_result``: what a result directory contributes to the next plan and to the next identification.
- ``payload_offline``: what a calibrated robot holds.
- ``payload_measurement``, ``payload_job``: the same while it works, for a node and its worker process.
- ``followed_result``: a robot that is followed by its joint states.
- ``known_loads``: gains of drives that recordings with known loads determine.
- ``fleet``: many robots with many bags each.
"""
