"""Solvers of the MAP problem.

- ``map_problem``: which regularizer is minimised by which solver.
- ``interior_point``, ``newton_system``, ``factors``: the built-in primal-dual interior point method.
- ``clarabel``: the same convex program by CVXPY and Clarabel, as a reference.
- ``osqp``: quadratic programs over point masses by OSQP.
- ``riemannian``: squared geodesic distance, by successive convex models.
- ``hyperplane_projection``, ``geodesic_least_squares``: geodesic distances to the hyperplanes of equations.

It may import ``prior`` and the folders before it.
"""
