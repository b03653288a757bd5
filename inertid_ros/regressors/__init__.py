"""Motion to equations that are linear in the parameters; imports ``core``, ``robot``, ``kinematics``, ``dynamics``.

- ``equations``: :class:`~.equations.Equations`, the interface of all types of equations, and how they are written.
- ``force_equations``: joint torques, and the wrench on a free base.
- ``momentum_equations``: momentum of a floating robot with reaction wheels.
- ``body_segment_equations``: external wrench on bodies whose motion is each measured.
- ``matrix_equations``: equations given as matrices.
- ``user_terms``, ``load_torque``: torque that a configuration adds, and that of known loads.
- ``rigid_body_regressor``: regressor of the rigid bodies' generalized force, batch by batch.
- ``rotor_regressor``, ``drive_regressor``, ``momentum_regressor``: those of rotors, of drives, of momentum.
- ``body_wrenches``, ``regressor_gradient``: wrenches of all bodies in the root frame, and the gradient of weighted
  regressor elements by the motion, for excitation.
- ``parent_regrouping``: columns of a body that can be counted to its parent.
"""
