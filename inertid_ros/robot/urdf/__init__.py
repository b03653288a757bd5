"""Contents of a URDF: text, joints, units, meshes, shapes, inertias of links without."""
