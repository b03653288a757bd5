"""The boundary to ROS 2: nothing else converts messages. May import the numerics, but no node and not ``cli``.

- ``conversions``: sensor messages, trajectories and batches to arrays and back.
- ``joint_order``: joints of a robot in joint states, whatever their order and names there.
- ``parameter_messages``: identified parameters and reports as messages, and back.
- ``subscriber``: :class:`ParameterSubscriber`, how a controller receives identified parameters.
- ``parameters``: ROS parameters from the typed configuration.
- ``qos``: the quality-of-service profiles.
- ``polling``: messages that wake no executor one by one: taken by hand, or in short intervals.
- ``definitions``: classes and definitions of message types by name.
- ``diagnostics``, ``markers``, ``transforms``: diagnostics, inertia in RViz, quaternions.
- ``discovery``: whether a server has discovered its client, and whether another node still lives.
- ``lifecycle``: a repair of rclpy's lifecycle nodes.
"""

from .subscriber import ParameterSubscriber

__all__ = ["ParameterSubscriber"]
