"""Where external wrenches act on the robot, and in which frame they are measured."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

_LEVEL = 1e-6  # m and rad


@dataclass(frozen=True)
class Plate:
    """A force plate fixed in the world.

    Attributes
    ----------
    xyz : tuple of float
        Origin in the world [m].
    rpy : tuple of float
        Orientation in the world [rad].
    partial : bool
        Whether it measures the force along its z-axis and the centre of pressure only, as a balance board does. Of its
        wrench, force along x and y and torque about z are unknown then, whatever is recorded.
    """

    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)
    partial: bool = False

    @property
    def rotation(self) -> Array:
        """``(3, 3)`` plate to world."""
        return np.asarray(pin.rpy.rpyToMatrix(*map(float, self.rpy)))


@dataclass(frozen=True)
class Contact:
    """A measured external wrench.

    Attributes
    ----------
    name : str
        Of the measurement, the key of ``Recording.wrenches``.
    frame : str
        Of the robot, that of a link for example. The wrench acts on its body.
    plate : Plate, optional
        Where the wrench is measured by a plate in the world; None where it is measured in ``frame`` itself.
    """

    name: str
    frame: str
    plate: Plate | None = None

    def __post_init__(self) -> None:
        if not (self.name and self.frame):
            raise ModelError(f"contact '{self.name}': needs a name and a frame of the robot")
        if self.plate is not None:
            numbers = (*self.plate.xyz, *self.plate.rpy)
            if len(self.plate.xyz) != 3 or len(self.plate.rpy) != 3 or not np.isfinite(numbers).all():
                raise ModelError(f"plate '{self.name}': pose needs three finite numbers each for xyz and rpy")


def ground_of(contacts: Sequence[Contact]) -> Plate | None:
    """The plate in whose frame the forces on the base are expressed: the first partial one; None where all are whole.

    Raises
    ------
    ModelError
        Partial plates in several planes. What one does not measure would enter what the other does.
    """
    partial = [(contact.name, contact.plate) for contact in contacts if contact.plate and contact.plate.partial]
    if not partial:
        return None
    first, ground = partial[0]
    normal = ground.rotation[:, 2]
    for name, plate in partial[1:]:
        apart = abs(normal @ (np.array(plate.xyz) - np.array(ground.xyz)))
        if apart > _LEVEL or np.linalg.norm(np.cross(normal, plate.rotation[:, 2])) > _LEVEL:
            raise ModelError(
                f"plates '{first}' and '{name}': measure only a part of the wrench and do not lie in one plane;"
                " correct their poses, or measure whole wrenches"
            )
    return ground


def check_contacts(kinematics: pin.Model, contacts: Sequence[Contact]) -> None:
    """Raise ``ModelError`` for a contact in a frame that the robot does not have, or with the name of another, and for
    partial plates in several planes."""
    ground_of(contacts)
    names = [contact.name for contact in contacts]
    for contact in contacts:
        if names.count(contact.name) > 1:
            raise ModelError(f"contact '{contact.name}': is given twice; rename or drop one")
        if not kinematics.existFrame(contact.frame):
            known = ", ".join(f.name for f in kinematics.frames if f.type == pin.FrameType.BODY)
            raise ModelError(
                f"contact '{contact.name}': the robot has no frame '{contact.frame}'; its links are {known}"
            )
