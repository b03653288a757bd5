"""What the nodes that move a robot share: its description, its joint states, its controller.

- ``robot_states``: description and joint states of one robot.
- ``joint_state_window``: the latest joint states, and whether a robot may begin to move from them.
- ``command_topic``: a topic of commands, and who else publishes there.
- ``publishers``: who publishes a topic, by name.
- ``diagnostics``: the statuses that all of them have.
- ``controller_manager``: what the controller manager says of the robot's controller.
"""
