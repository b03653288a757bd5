"""Collision geometry of links; imports all of ``robot``.

- ``collision_shapes``: the shapes of a URDF, placed in the moving bodies.
- ``mesh_files``: the files behind their URLs.
- ``meshes``: mesh files, read by Coal.
- ``capsules``: capsules around shapes, for distances.
- ``collision_ellipsoids``: ellipsoids around shapes, as bounds of mass.
"""
