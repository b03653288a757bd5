"""Criteria: how well a motion excites the parameters, and the gradient of that along the motion.

- ``measurement_regressor``: regressor of joint torques and of the wrench at the base.
- ``earlier_information``: information of earlier recordings.
- ``motion_information``: equations of a motion in the base parameters, and their singular values.
- ``criterion_scaling``: units of the base parameters.
- ``optimality``: condition number, A-, D- and E-optimality as smooth functions of eigenvalues.
- ``criterion``: all of these as one objective.
- ``weak_parameters``: what a motion does not excite, and why.

May import ``motions`` and ``limits``.
"""
