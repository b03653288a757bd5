"""The demo: a simulated robot is calibrated by all nodes and compared with the truth.

- ``main``: the command ``demo``; starts the nodes and the calibration, and prints what changed.
- ``processes``: child processes with logs that end together.
- ``domain``: a ROS domain for one demo (or test run) alone.
- ``comparison``: the calibrated robot against the simulated truth.
- ``payload``, ``work``: a box that the calibrated arm grasps while it works.
"""
