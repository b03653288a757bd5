"""Assessment of estimates: uncertainty, identifiability, torque confidence and validation.

- ``estimate``: :class:`~.estimate.Estimate`, the result of identification.
- ``identifiability``: whether a parameter is identified alone, in combination, or left at the prior.
- ``uncertainty``: variances by the data, apart from the prior.
- ``torque_confidence``: uncertainty of predicted torque over the robot's range.
- ``plausibility``: whether masses and stiffness are those that such a robot can have.
- ``validation``: errors on held-out data, and the gate that a result must pass.

It may import ``solvers`` and the folders before it.
"""
