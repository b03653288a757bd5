"""Excitation: motions that a robot can execute and that make its parameters identifiable.

Folders, in the order in which they may import one another:

- ``motions``: functions of time with a few parameters, and the quintics that plans are made of.
- ``limits``: limits of motions, the interface of constraints, and proofs between samples.
- ``plans``: finished motions as dense knots, their files.
- ``constraints``: efforts, distances from collision, balance.
- ``criteria``: how well a motion excites, with gradient.
- ``planning``: optimisation of motions that are linear in their parameters.
- ``direction_combinations``: motions of cycloidal intervals, pruned.
- ``execution``: what is sent to the controller, brakes, and monitoring.

Files:

- ``planner``: the entry point, for all types of motion.
- ``inspection``: a plan in numbers: limits used, distances, condition number, singular values.

It may import ``core``, ``config``, ``robot``, ``kinematics``, ``dynamics``, ``data``, ``regressors`` and
``identification``.
"""
