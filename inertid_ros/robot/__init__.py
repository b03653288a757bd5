"""What is known of the machine: URDF, bodies, drives, limits."""
