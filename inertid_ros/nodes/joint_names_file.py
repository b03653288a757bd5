"""Parameter file with the names of joints that a launch argument gives."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats.yaml_text import read_yaml


def write_joint_names(text: str, folder: Path) -> Path:
    """Write a parameter file that sets ``robot.joint_names`` of every node, and return its path.

    Parameters
    ----------
    text : str
        Names in recordings and of controllers to names in the URDF, ``{fer_*: panda_*}``; empty sets nothing.
    folder : Path

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
    file = folder / "joint_names.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}), encoding="utf-8")
    return file
