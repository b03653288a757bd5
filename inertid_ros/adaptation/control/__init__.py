"""Control with parameters that adapt.

- ``inertial_manifold``: natural steps of parameters, bounds and projections.
- ``drives``: torque of calibrated drives, friction above all.
- ``tracking``: torque from the error of tracking, and what that error says of the parameters.
- ``adaptive_control``: controllers that track a reference and adapt by such steps.
"""
