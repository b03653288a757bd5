"""ROS 2 nodes: parameters in, callbacks, numerics, messages out. A folder for each node; they may import everything.

- ``excitation``: plans exciting motions and moves the robot along them.
- ``recorder``: writes joint states and sensors to bags and publishes them as batches.
- ``identifier``: solves for parameters and publishes them.
- ``online``: follows a calibrated robot: parameters, changes, payloads.
- ``calibrate``: a client of these three that runs a whole calibration.
- ``measure_payload``: a client of excitation and online that moves a robot to identify what it holds.
- ``simulator``: a simulated robot with the topics of a real one.
- ``replay``: plays a bag.
- ``demo``: simulator and calibration together, compared with the truth.
- ``spin``: the main loop of every node.
- ``launching``: what the launch files share.
- ``joint_names_file``: the parameter file that a launch argument with names of joints stands for.
- ``access_policy``: the SROS 2 policy of all nodes, made from what they create.
- ``parameter_files``: the files in ``config/`` and the parameter reference, made from the parameters of all nodes.

A node is ``nodes/<name>/node.py``, its parameters ``nodes/<name>/parameters.py``. State machines (the recorder's
``session``, the excitation node's ``state_machine``) need neither ROS nor a clock of their own: the node
gives them the time.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is loaded: threads of its small matrices would wait, and spin
