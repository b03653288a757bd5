"""The identifier: recordings in, validated parameters out, latched for controllers.

- ``node``: action, subscriptions and publishers; solving runs in a worker.
- ``job``: what a goal asks for, without ROS.
- ``parameters``: the parameters of the node.
"""
