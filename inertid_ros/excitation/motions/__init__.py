"""Motions: functions of time with a few parameters, and the quintics that plans are made of.

- ``basis_functions``: the protocol of bases; Fourier series and cycloidal intervals.
- ``spline``: B-splines.
- ``trajectories``: motions that are linear in their parameters, ramps, and concatenation.
- ``quintic``: the piecewise quintic that a controller follows, and its exact extremes.
"""
