"""Commands around the nodes: the demo and the access policy. Modules here may import every node."""
