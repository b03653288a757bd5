"""Options: typed models with description, unit, range and choices, the same for YAML, ROS parameters and command line.

The models are attrs classes; every numeric choice of the packages above is defined here and imported by them.
``option_fields`` defines options, ``structuring`` fills them, ``configuration`` holds the trees of commands, ``nodes``
those of nodes, ``yaml_files`` reads both; the other modules hold the options of one subject each. It imports ``core``
alone, and no NumPy.
"""
