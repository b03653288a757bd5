"""Contents of a URDF: text, joints, units, meshes, shapes, missing inertias."""
