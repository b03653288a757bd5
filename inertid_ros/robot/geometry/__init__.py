"""Geometry of links; imports ``urdf``.

- ``mesh_files``: the files behind the URLs of a URDF.
- ``meshes``: mesh files, read by Coal in a process of its own.
- ``collision_shapes``: the shapes of a URDF, placed in the moving bodies, with their meshes.
- ``capsules``: capsules around shapes, for distances.
- ``solids``: inertial parameters of homogeneous shapes.
"""
