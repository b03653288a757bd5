"""Where external wrenches act on the robot, and in which frame they are measured."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ..errors import ModelError
from .parameters import Array

BASES = ("fixed", "free")


@dataclass(frozen=True)
class Plate:
    """A force plate fixed in the world.

    Attributes
    ----------
    xyz: m, its origin in the world.
    rpy: rad, its orientation in the world.
    """

    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)

    @property
    def rotation(self) -> Array:
        """``(3, 3)`` plate to world."""
        return np.asarray(pin.rpy.rpyToMatrix(*map(float, self.rpy)))


@dataclass(frozen=True)
class Contact:
    """A measured external wrench.

    Attributes
    ----------
    name: of the measurement, the key of ``Recording.wrenches``.
    frame: of the robot, that of a link for example. The wrench acts on the body that carries it.
    plate: where the wrench is measured by a plate in the world; None where it is measured in ``frame`` itself.
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


def check_contacts(kinematics: pin.Model, contacts: Sequence[Contact]) -> None:
    """Raise ``ModelError`` for a contact in a frame that the robot does not have, or with the name of another."""
    names = [contact.name for contact in contacts]
    for contact in contacts:
        if names.count(contact.name) > 1:
            raise ModelError(f"contact '{contact.name}': is given twice; rename or drop one")
        if not kinematics.existFrame(contact.frame):
            known = ", ".join(f.name for f in kinematics.frames if f.type == pin.FrameType.BODY)
            raise ModelError(
                f"contact '{contact.name}': the robot has no frame '{contact.frame}'; its links are {known}"
            )
