"""URDF text from xacro."""

from collections.abc import Mapping
from pathlib import Path

from inertid_ros.core.errors import ModelError, one_line

SUFFIX = ".xacro"


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file by the library of ROS 2.

    The library evaluates expressions of the file and reads what it includes: only for files that are trusted.

    Parameters
    ----------
    path : Path
    arguments : mapping of str to str
        ``xacro:arg`` to value.

    Raises
    ------
    ModelError
        The library is not installed, there is no such file, or it cannot be expanded.
    """
    try:
        import xacro
    except ModuleNotFoundError:
        raise ModelError(
            f"{path}: is xacro, whose library is not installed; install ros-$ROS_DISTRO-xacro, or pip install xacro"
        ) from None
    if not path.is_file():
        raise ModelError(f"{path}: no such xacro file; check the path")
    try:
        document = xacro.process_file(str(path), mappings=dict(arguments))
    except Exception as error:  # the library has errors of its own, and passes on those of what a file evaluates
        reason = one_line(str(error)) or error.__class__.__name__
        raise ModelError(f"{path}: xacro cannot expand it ({reason}); correct it or its arguments") from None
    return str(document.toprettyxml(indent="  "))
