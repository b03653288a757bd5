"""Where example-robot-data keeps its URDFs, installed by pip or by ROS."""

import os
import sys
from pathlib import Path

from inertid_ros.core.errors import ModelError

PANDA = "panda_description/urdf/panda.urdf"


def example_urdf(name: str = PANDA) -> Path:
    """Path of an example robot's URDF, relative to the package's folder of robots.

    Raises
    ------
    ModelError
        Example-robot-data is not installed, or has no such file.
    """
    prefixes = [Path(site) / "cmeel.prefix" for site in sys.path]
    prefixes += [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(":") if prefix]
    for prefix in prefixes:
        folder = prefix / "share" / "example-robot-data" / "robots"
        if (folder / name).is_file():
            return folder / name
    raise ModelError(f"{name}: not found; install example-robot-data, or give a URDF file")
