"""The recorder: joint states and sensor topics to a crash-safe bag and to synchronised batches.

- ``node``: subscriptions, services and publishers.
- ``session``: the state machine of a recording from start to stop; it needs neither ROS nor a clock.
- ``sources``: which topics are recorded, from the parameters.
- ``topic_graph``: the publishers of these topics, and why they bring no data.
- ``parameters``: the parameters of the node.
"""
