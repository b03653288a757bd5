"""Catalogue of a fleet: its robots, their bags, and known payloads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import attrs

from inertid_ros.config.robot import LoadOptions
from inertid_ros.config.schema.option_fields import REQUIRED, option
from inertid_ros.core.errors import one_line


@attrs.frozen
class FleetRobot:
    """A robot of a fleet, as a catalogue has it."""

    serial: str = option(REQUIRED, "serial number, unique in the fleet", of=str)
    model: str = option(REQUIRED, "name of its model; robots of a model have the same kinematics", of=str)
    urdf: str = option(REQUIRED, "path or URL of its URDF", of=str)


@attrs.frozen
class BagFields:
    """A bag in a catalogue."""

    serial: str = option(REQUIRED, "serial number of the robot", of=str)
    bag: str = option(REQUIRED, "path or URL of the recording", of=str)
    date: str = option(REQUIRED, "ISO 8601 date, or date and time, at which it was recorded", of=str)
    payload: str = option("", "name of the payload that the robot held; empty is none")


@dataclass(frozen=True)
class FleetBag:
    """A bag of a robot.

    Attributes
    ----------
    serial : str
        Of the robot.
    url : str
        Path or URL.
    date : datetime
        Of the recording, UTC where it has no zone.
    payload : str
        Name of what the robot held; empty where it held nothing.
    load : LoadOptions or None
        The payload; None where there was none.
    """

    serial: str
    url: str
    date: datetime
    payload: str = ""
    load: LoadOptions | None = None

    @property
    def day(self) -> float:
        """Days since 1970."""
        return self.date.timestamp() / 86400.0


@dataclass(frozen=True)
class FleetProblem:
    """What could not be used, in one line; the rest of the fleet goes on.

    Attributes
    ----------
    serial, bag : str
        Whom it is about; empty where it is about more.
    message : str
    input : bool
        Whether it could not be read or written; false of what was read and is not to be used.
    """

    serial: str
    bag: str
    message: str
    input: bool = True

    def __str__(self) -> str:
        message = self.message if self.bag in self.message else f"{self.bag}: {self.message}"
        told = not self.serial or message.startswith(f"{self.serial}: ")
        return one_line(message if told else f"{self.serial}: {message}")


@dataclass(frozen=True)
class Catalogue:
    """Robots and bags of a fleet.

    Attributes
    ----------
    robots : mapping of str to FleetRobot
        By serial number.
    bags : tuple of FleetBag
        Of these robots, by serial number and date.
    problems : tuple of FleetProblem
        What of the catalogue could not be used.
    """

    robots: Mapping[str, FleetRobot]
    bags: tuple[FleetBag, ...]
    problems: tuple[FleetProblem, ...] = field(default=())
