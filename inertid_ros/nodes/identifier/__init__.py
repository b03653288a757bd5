"""The identifier: recordings in, validated parameters out, latched for controllers.

- ``node``: action, subscriptions and publishers; solving runs in a worker.
- ``job``: what a goal asks for, without ROS.
- ``kept_result``: the last accepted result in a file, for a restart.
- ``publication``: what controllers and RViz are given, latched.
- ``diagnostics``: the statuses of the node.
- ``parameters``: the parameters of the node.
"""
