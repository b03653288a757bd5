"""Parameters of rigid bodies and drives; imports ``core`` and ``config``.

- ``inertial_parameters``: the ten parameters of a body, pseudo-inertia, consistency, distance.
- ``layout``: which column of the parameter vector is which parameter.
- ``user_terms``: torque of a joint that a configuration adds.
- ``rotors``: motors as bodies of their own.
- ``uniform_ellipsoid``: the ellipsoid of even density with the inertia of a body.
- ``ellipsoids``: ellipsoids that bound where the mass of a link can be.
"""
