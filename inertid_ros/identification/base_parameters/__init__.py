"""Base parameters: the combinations of parameters that motion can excite, numerically and in closed form.

- ``result``: :class:`BaseParameters`, the columns kept and how the others regroup into them.
- ``column_selection``: ranks by a visible gap, and which columns to keep.
- ``kinematic_tree``: placements and axes, without the rounding of URDF files.
- ``joint_motion``: coefficients of the transforms of every joint.
- ``observability``: which parameters of a body appear in the torque of its own joint and of those before it.
- ``shared_inertias``: coupled drives and geared rotors, which act on several joints.
- ``parameter_regrouping``: into the parent, and among coupled drives.
- ``units``: unit lengths and gravity, and the columns of links in the layout.
- ``closed_form``, ``numeric``: the two ways to base parameters.

It may import ``information`` and the rooms before identification; ``docs/base_parameters.md`` derives the closed form.
"""

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
