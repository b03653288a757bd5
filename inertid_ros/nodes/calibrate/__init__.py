"""The calibration flow, a client of the other nodes: excite, record, identify, validate.

- ``node``: the steps in order, and the exit status.
- ``movers``: the excitation node, or a robot that moves by itself.
- ``client``: services, actions and lifecycle nodes step by step, with timeouts and interruption.
- ``progress_line``: progress for the user.
- ``parameters``: the parameters of the node.
"""
