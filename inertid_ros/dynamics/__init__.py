"""Forces and momenta of a robot with known parameters; imports ``core``, ``robot`` and ``kinematics``.

- ``body_torques``: generalized force of every single inertial parameter.
- ``newton_euler``: the wrench of a body, linear in its parameters, and inverse dynamics.
- ``body_torques``: generalized force of every single inertial parameter.
- ``floating_base_motion``: motion of a floating base from momentum, and torques of the joints.
- ``user_terms``: torque that a configuration adds to joints.
- ``friction``: friction of drives as a function of velocity.
- ``contact_wrenches``: wrenches of contacts from joint torques, and base rows in the frame of a plate.
"""
