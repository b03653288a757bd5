"""Launch arguments: unknown arguments, arguments without effect, and names of joints. ROS 2 is not needed."""

import difflib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import yaml

from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats import read_yaml


def check_arguments(command: Sequence[str], file: str, names: Collection[str]) -> None:
    """Refuse an argument of ``command`` that a launch file does not declare; `ros2 launch` ignores such arguments.

    ``command`` holds the words of the command line, ``names`` the arguments that the file and its included files
    declare. If ``command`` starts another file, which includes this one, its arguments are not checked. The
    ConfigurationError suggests the closest name.
    """
    path = Path(file).resolve()
    for package, word in zip(command, command[1:], strict=False):
        if Path(word).name == path.name and (package == "inertid_ros" or Path(word).resolve() == path):
            break
    else:
        return
    for name in (word.partition(":=")[0] for word in command if ":=" in word):
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            remedy = f"did you mean {close[0]}:=?" if close else f"choose from {', '.join(names)}"
            raise ConfigurationError(f"{path.name}: {name}:= is not one of its arguments; {remedy}")


def check_switches(values: Mapping[str, str], defaults: Mapping[str, str], file: str,
        switches: Mapping[str, Sequence[str]]) -> None:
    """Raise ConfigurationError if an argument differs from its default although the switch that it needs is off."""
    for switch, names in switches.items():
        if values[switch].lower() in ("true", "1"):
            continue
        for name in names:
            if values[name] != defaults[name]:
                raise ConfigurationError(
                    f"{Path(file).name}: {name}:={values[name]} has no effect while {switch}:={values[switch]};"
                    " leave one of them out")


def write_joint_names(text: str, folder: Path) -> Path:
    """Write a parameter file that sets ``robot.joint_names`` of every node, and return its path.

    The text maps names in recordings and controllers to names in the URDF, ``{fer_*: panda_*}``; it may be empty.
    """
    try:
        names = read_yaml(text or "{}")
    except FormatError:
        names = None
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for pair in names.items() for name in pair):
        raise ConfigurationError(
            f"joint_names:={text}: is not a mapping of names to names; write joint_names:='{{fer_*: panda_*}}'")
    parameters = {"robot": {"joint_names": dict(names)}} if names else {}
    content = yaml.safe_dump({"/**": {"ros__parameters": parameters}})
    # Each mapping has a file of its own, as the robots of one launch may have different names.
    file = folder / f"joint_names_{hashlib.sha256(content.encode()).hexdigest()[:12]}.yaml"
    file.write_text(content, encoding="utf-8")
    return file
