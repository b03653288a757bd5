"""Packages that only fleets need, imported where they are used."""

import importlib
from types import ModuleType

from .catalogue import FleetError


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
        raise FleetError(f"inertid fleet needs the Python package {package}; pip install 'inertid_ros[fleet]'") from None
