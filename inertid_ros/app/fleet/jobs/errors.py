"""Errors of fleets, and packages that only fleets need, imported where they are used."""

import importlib
from types import ModuleType

from inertid_ros.core.errors import InertidError


class FleetError(InertidError):
    """A fleet cannot be processed at all: no catalogue, no scheduler, no place for results."""


def optional(module: str) -> ModuleType:
    """A module of a package that is not always installed.

    Raises
    ------
    FleetError
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        message = f"inertid fleet needs the Python package {package}; pip install 'inertid_ros[fleet]'"
        raise FleetError(message) from None
