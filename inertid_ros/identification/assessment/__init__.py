"""Assessment of estimates: uncertainty, identifiability, torque confidence and validation.

- ``estimate``: :class:`~.estimate.Estimate`, the result of identification.
- ``posterior``: errors of an estimate by data, prior and bounds; ``truncated_normal``: its part within bounds.
- ``identifiability``: whether a parameter is identified alone, in combination, or left at the prior.
- ``uncertainty``: variances by the data, apart from the prior.
- ``torque_confidence``: uncertainty of predicted torque over the robot's range.
- ``plausibility``: whether masses and stiffness are those that such a robot can have.
- ``term_choices``: whether user terms were kept.
- ``validation``: errors on held-out data, of the result and of the URDF as given.
- ``error_checks``: what these errors show, over all channels and channel by channel.
- ``torque_scale``: the torque that joints have, by which errors are measured.
- ``solution_checks``: consistency and optimality, borders that were reached, what the motion left open.
- ``gate``: the verdict on a result from all findings.

It may import ``solvers`` and the folders before it.
"""
