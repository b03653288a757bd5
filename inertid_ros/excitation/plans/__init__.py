"""Plans: finished motions, to be inspected, stored, checked and executed.

- ``plan``: a motion as dense knots, made slower or joined.
- ``plan_file``: plan.yaml.
- ``joint_trajectory_file``: a plan as ``trajectory_msgs/JointTrajectory`` in YAML.

May import ``motions`` and ``limits``.
"""
