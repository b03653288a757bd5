"""Simulated robots with the topics of real ones.

- ``node``: an arm that follows commands.
- ``force_plate_robot``: a robot on force plates that moves by itself.
- ``parameters``: the parameters of the node.
"""
