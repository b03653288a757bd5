"""Balance of a robot whose root stands on the ground: centre of mass, zero-moment point, normal force."""
