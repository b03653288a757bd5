"""The prior: normalised coordinates, distances to it, regularizers, hard constraints, and their convex program.

- ``distances``: squared distances of bodies to their prior, with gradient and Hessian.
- ``coordinates``: normalised coordinates, and scales of parameters.
- ``convex_program``: the optimization problem and its solution.
- ``point_masses``: bodies as point masses at fixed positions.
- ``regularizers``: the regularized convex program of whitened equations.
- ``evidence``: the prior spread of the largest evidence.
- ``constraints``: ellipsoids, masses, symmetry and fixed values.
- ``constrained_convex_program``: the convex program with these.

It may import ``information`` and ``base_parameters``, and the rooms before identification.
"""
