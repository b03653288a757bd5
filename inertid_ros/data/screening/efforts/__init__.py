"""Whether efforts are those of this robot on this motion, and what explains them where they are not.

- ``checks``: the cause that explains efforts far better than as recorded.
- ``comparison``: hypotheses on one recording, and what each costs.
- ``hypotheses``: a cause, as the change that would put efforts or motion right.
- ``equations``: how well the robot, with plausible bodies and any friction, explains efforts.
- ``torque_columns``: what the torque is linear in along a motion.
- ``findings``: evidence and remedy of what explains them.
"""
