"""Commands around the nodes: the demo, the parameter files and the access policy. They may import every node."""
