"""Distance of a robot's links from one another, from obstacles and from the floor.

- ``collision_objects``: links and obstacles as capsules and exact shapes.
- ``pairs``: which objects are kept apart.
- ``closest_points``: closest points of segments.
- ``exact_distances``: distances of convex hulls and meshes by Coal.
- ``scene``: distances of all pairs in given poses, and their gradient.
- ``clearance``: the constraint.
"""
