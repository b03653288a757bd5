"""Balance of a robot whose root is on the ground: centre of mass, zero-moment point, normal force."""
