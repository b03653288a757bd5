"""Options: typed models with description, unit, range and choices, shared by YAML, ROS parameters and command line.

The models are attrs classes. Every numeric choice of the packages above is defined here and imported by them.
``option_fields`` defines options and ``structuring`` fills them. ``configuration`` holds the option trees of commands,
``nodes`` the trees of nodes, and ``yaml_files`` reads both. Each other module holds the options of one subject. The
package imports only ``core``, and not NumPy.
"""
