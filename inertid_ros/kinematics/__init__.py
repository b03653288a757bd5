"""Motion of every body of a tree, for many samples at once; imports ``core`` and ``robot``.

- ``tree_kinematics``: placements, screws, velocities and accelerations in the root frame.
- ``body_recursion``: the same in the frames of the bodies, samples last: the fast path of regressors.
- ``contact_jacobians``: external wrenches as generalized forces.
- ``lever_arms``: bounds of how far a joint can move a point.
- ``spatial``: products of spatial motions and forces.
"""
