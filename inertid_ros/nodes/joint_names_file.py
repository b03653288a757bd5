"""Parameter file with the names of joints that a launch argument gives."""

import atexit
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats.yaml_text import read_yaml


def joint_names_file(text: str) -> str:
    """Path of a new parameter file that sets ``robot.joint_names`` of every node, until this process ends.

    Parameters
    ----------
    text : str
        Names in recordings and of controllers to names in the URDF, ``{fer_*: panda_*}``; empty sets nothing.

    Raises
    ------
    ConfigurationError
        The text is no mapping of names to names.
    """
    try:
        names = read_yaml(text or "{}")
    except FormatError:
        names = None
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for pair in names.items() for name in pair):
        raise ConfigurationError(
            f"joint_names:={text}: is no mapping of names to names; write joint_names:='{{fer_*: panda_*}}'"
        )
    parameters = {"robot": {"joint_names": dict(names)}} if names else {}
    with tempfile.NamedTemporaryFile(
        "w", prefix="inertid_joint_names_", suffix=".yaml", delete=False, encoding="utf-8"
    ) as file:
        yaml.safe_dump({"/**": {"ros__parameters": parameters}}, file)
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return file.name
