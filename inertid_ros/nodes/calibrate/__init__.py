"""The calibration flow, a client of the other nodes: excite, record, identify, validate.

- ``node``: the steps in order, and the exit status.
- ``movers``: the excitation node, or a robot that moves by itself.
- ``parameters``: the parameters of the node.
"""
