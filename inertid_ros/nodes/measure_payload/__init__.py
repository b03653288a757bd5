"""A short motion planned for a payload: the excitation node moves the robot, the online node identifies what it holds.

- ``node``: the steps in order, and the exit status.
- ``parameters``: the parameters of the node.
"""
