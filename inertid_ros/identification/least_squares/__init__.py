"""Classical least-squares estimators: baselines and diagnostics.

- ``estimators``: the entry point, :func:`~.estimators.least_squares`.
- ``linear_fit``: fits of full rank, with the weights of the joints at their fixed point.
- ``parameter_spectrum``: directions of the parameter space, from the best to the least determined.
- ``rank``: how many of them to fit.
- ``robust``: Huber's loss.

It may import ``assessment`` and the folders before it.
"""
