"""Options: typed models with description, unit, range and choices, the same for YAML, ROS parameters and command line.

The models are attrs classes; every numeric choice of the packages above is defined here and imported by them.

* ``schema``: how options are defined and filled
* ``yaml_files``: configuration from a plain YAML file or from a ROS parameter file
* ``configuration``: the two trees, of identification and of excitation
* ``robot``, ``recording_topics``, ``preparation``: reading
* ``identification``, ``least_squares``, ``identification_constraints``: identifying
* ``excitation``, ``collision``, ``balance``, ``direction_combinations``, ``execution``: moving
* ``simulation``: simulated robots

It imports ``core`` alone, and no NumPy.
"""
