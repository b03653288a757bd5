"""Simulation: robots in MuJoCo, and a free-floating robot, in place of hardware.

- ``example_robots``: paths of the URDFs of example-robot-data.
- ``mujoco_model``: a URDF as a MuJoCo model.
- ``drives``: friction, rotor inertia and offsets of the joints.
- ``joint_sensors``: noise, resolution, and faults of the state channel.
- ``commands``: trajectories and streams that the controller follows.
- ``held_box``: a box that an arm can hold.
- ``simulated_robot``: an arm with drives, controller and sensors.
- ``plan_recording``: a plan executed and recorded without ROS.
- ``free_floating``: a space robot, whose base follows from momentum.
- ``force_plates``: legged robots on force plates.
- ``examples``: files to try the guides with.

It may import ``core``, ``config``, ``robot``, ``kinematics``, ``dynamics``, ``data``, ``regressors``,
``identification`` and ``excitation``.
"""
