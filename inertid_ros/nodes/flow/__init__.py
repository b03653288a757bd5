"""What flows share: clients that ask the other nodes for one step after the other, and end.

- ``running``: a flow as an executable, with its exit statuses.
- ``client``: services, actions and lifecycle nodes step by step, with timeouts and interruption.
- ``excitation_mover``: the excitation node moves the robot.
- ``progress_line``: progress for the user.
"""
