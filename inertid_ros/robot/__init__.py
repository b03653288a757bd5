"""The machine: one URDF with what identification needs of it; imports ``core`` and ``config``.

- ``model``: :class:`~.model.RobotModel` and how it is loaded.
- ``tree``: the kinematic tree for batched recursions.
- ``configured_model``: how a URDF is read, from a configuration.
- ``contacts``, ``wheels``: where external wrenches act; reaction wheels.
- ``recorded_joints``: what recordings and controllers call the joints.
- ``body_segments``: models of bodies without joints.
- ``loads``: known bodies that recordings were made with.
- ``perturbation``: priors that are wrong by known point masses.
- ``missing_inertias``: priors of links without inertia.
- ``units``: what lengths, masses, inertias and limits cannot be in units of the SI.
- ``link_shapes``, ``collision_ellipsoids``: collision shapes of the links, and ellipsoids as bounds of their mass.
- ``urdf_writing``: estimates written back into the URDF.

Folders, lowest first: ``bodies`` (inertial parameters, layout of the parameter vector), ``urdf`` (reading and editing
of the text), ``geometry`` (shapes), the files above.
"""
