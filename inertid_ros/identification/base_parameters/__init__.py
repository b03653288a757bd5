"""Base parameters: the combinations of parameters that motion can reveal at all, numerically and in closed form."""

from .closed_form import closed_form_base_parameters, minimal_parameters
from .kinematic_tree import KinematicTree, denavit_hartenberg_tree, kinematic_tree, tidied
from .numeric import base_parameters, base_parameters_of_robot, structural_base_parameters
from .result import BaseParameters

__all__ = [
    "BaseParameters",
    "KinematicTree",
    "base_parameters",
    "base_parameters_of_robot",
    "closed_form_base_parameters",
    "denavit_hartenberg_tree",
    "kinematic_tree",
    "minimal_parameters",
    "structural_base_parameters",
    "tidied",
]
