"""Robot: URDF, parameter layout, model, contacts, kinematics and dynamics."""
