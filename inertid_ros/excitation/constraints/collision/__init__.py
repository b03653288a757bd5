"""Distance of a robot's links from one another, from obstacles and from the floor."""
