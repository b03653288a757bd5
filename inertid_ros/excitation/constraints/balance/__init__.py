"""Balance of a robot whose root is on the ground: centre of mass, zero-moment point, normal force.

- ``polygon``: convex areas on the ground.
- ``robot_masses``: masses of the whole robot and their centre.
- ``centre_of_mass``: the constraint that the centre of mass stays above an area.
- ``zero_moment_point``: the constraint on zero-moment point and normal force.
"""
