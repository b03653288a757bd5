"""Details of a result, for reports: derived from an estimate and the samples that it was fitted to or validated on.

- ``body_intervals``: mass, centre of mass and inertia of bodies with intervals, and what the data determine of each.
- ``inertia_ellipsoids``: ellipsoids of inertia before and after, in one pose of the robot.
- ``prediction_curves``: measured and predicted torque along recordings.
- ``friction_curves``: friction over velocity, and the data that show it.
- ``motion_coverage``: what recorded motion covered, and what to move next.
- ``correlated_parameters``: pairs of base parameters that are not apart.
- ``feasibility``: margins to bodies that cannot exist.
- ``next_action``: what to do next, and its command.
- ``result_comparison``: differences between two results of one robot.
- ``result_details``: all of these of one result, but for the next action.

It may import ``assessment`` and the folders before it.
"""
