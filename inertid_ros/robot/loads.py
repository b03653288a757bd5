"""Known loads: bodies of known parameters that some recordings were made with, fixed to a link."""

from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pinocchio as pin

from inertid_ros.config.robot import LoadOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, is_consistent

from .model import RobotModel


def load_bodies(model: RobotModel, loads: Mapping[str, LoadOptions], recording: str) -> Array:
    """What the loads of a recording add to the links, ``(nb, 10)``.

    Parameters
    ----------
    loads : mapping of str to LoadOptions
        By their names.
    recording : str
        Name of the recording; patterns are matched with the whole and with its last part, with and without suffix.

    Raises
    ------
    ModelError
        A load is on a link that the robot does not have or that does not move, or is no body that can exist.
    """
    bodies = np.zeros((len(model.link_names), BODY_PARAMETERS))
    names = {recording, Path(recording).name, Path(recording).stem}
    for name, load in loads.items():
        body, parameters = _placed(model, name, load)
        if any(fnmatch(each, pattern) for each in names for pattern in load.recordings):
            bodies[body] += parameters
    return bodies


def _placed(model: RobotModel, name: str, load: LoadOptions) -> tuple[int, Array]:
    """Index of the body that a load moves with, and its parameters in the frame of that body."""
    tree = model.pinocchio
    if not tree.existFrame(load.link):
        raise ModelError(f"load '{name}': the URDF has no link '{load.link}'; name the link that holds it")
    frame = tree.frames[tree.getFrameId(load.link)]
    if frame.parentJoint == 0:
        raise ModelError(f"load '{name}': link '{load.link}' does not move, so that nothing shows the load")
    xx, xy, xz, yy, yz, zz = load.inertia or (0.0,) * 6
    rotational = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    own = pin.Inertia(load.mass, np.array(load.com), rotational)
    # A point mass lies on the border of what can exist.
    if load.inertia and not is_consistent(own.toDynamicParameters()[None]).all():
        raise ModelError(f"load '{name}': no body has this inertia; give it about the centre of mass")
    return int(frame.parentJoint) - 1, np.array((frame.placement.act(own)).toDynamicParameters())
