"""The access control policy of SROS 2 for the nodes of this package, made from what the nodes create.

``python -m inertid_ros.nodes.access_policy security`` writes it for nodes with their defaults. Parameters, a namespace
and remapping change what they create: give those of the robot after ``--ros-args``.

* ``used_names``: topics, services and actions of a node as the graph shows them
* ``running_nodes``: the nodes, made here for a moment
* ``policy_text``: the file
"""
