"""Identification: from equations of prepared samples to physically consistent parameters with their uncertainty.

Folders, in the order in which they may import one another:

- ``information``: data compressed to square-root information, and checks of data and residuals.
- ``base_parameters``: combinations of parameters that motion can excite, numerically and in closed form.
- ``prior``: normalised coordinates, distances, regularizers, constraints and the convex program they make.
- ``solvers``: interior point, Riemannian, geodesic, and convex and quadratic programs by other packages.
- ``assessment``: estimates, their uncertainty and identifiability, torque confidence, validation, gate.
- ``details``: what reports show of a result beside its parameters.
- ``least_squares``: classical estimators.
- ``population``: many recordings of a robot, and many robots of a model.
- ``gains``: gains of the drives, which known loads tell.

Files:

- ``identify``: the entry point.
- ``map_fit``: weights of channels and prior spread, iterated with the solution.
- ``drive_term_test``: whether data show a drive term, in single joints or in all together.
- ``friction_speeds``: transition speeds, and which joints have Stribeck friction.
- ``stribeck_speeds``: Stribeck speeds of the least misfit.
- ``held_out_blocks``: cross-validation on blocks of the data fitted, where nothing else was held out.
- ``new_motion``: whether what was held out is a motion that the fit has not seen.
- ``continuation``: an earlier result as the prior.
- ``term_choice``: which user terms stay, by held-out blocks.
- ``equal_residual``: comparison of regularizers.
- ``rounds``: when further rounds of excitation and identification end.
- ``provenance``: recordings, robot, configuration and versions that a result comes from.
- ``outcome``: an estimate with its errors and confidence, and the verdict on it.

It may import ``core``, ``config``, ``robot``, ``kinematics``, ``dynamics``, ``data`` and ``regressors``.
"""
