"""Geometry of links; imports ``urdf``.

- ``collision_shapes``: the shapes of a URDF, placed in the moving bodies.
- ``mesh_files``: the files behind their URLs.
- ``meshes``: mesh files, read by Coal.
- ``capsules``: capsules around shapes, for distances.
- ``solids``: inertial parameters of homogeneous shapes.
"""
