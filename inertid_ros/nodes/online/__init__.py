"""The online node: parameters, changes and payloads of a calibrated robot from its joint states as they come.

- ``node``: subscription, publishers and action.
- ``following``: from messages to the robot that is followed, once its result and its rate are known.
- ``payload_goal``: one goal of the payload action, from joint states to the answer.
- ``diagnostics``: the statuses of the node.
- ``parameters``: the parameters of the node.
"""
