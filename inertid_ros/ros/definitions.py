"""Message definitions as a bag stores them: the type's own text and that of every type it holds."""

import functools
import importlib
import re
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from inertid_ros.core.errors import InertidError

_SEPARATOR = "=" * 80
_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_PRIMITIVES = _INTEGERS | {"bool", "byte", "char", "float32", "float64", "string", "wstring"}


@functools.cache
def message_class(type_name: str) -> Any:
    """Python class of ``pkg/msg/Name``.

    Raises
    ------
    InertidError
        Not of this form, or its package is not installed.
    """
    parts = type_name.split("/")
    if len(parts) != 3 or parts[1] != "msg":
        raise InertidError(f"message type '{type_name}': is not of the form PACKAGE/msg/NAME")
    try:
        return getattr(importlib.import_module(f"{parts[0]}.msg"), parts[2])
    except (AttributeError, ModuleNotFoundError) as error:
        raise InertidError(f"message type '{type_name}': cannot be loaded ({error}); install its package") from None


def message_definition(type_name: str) -> str:
    """Definition of ``pkg/msg/Name`` in the concatenated form of rosbag2 (``ros2msg``).

    Raises
    ------
    InertidError
        Its package is not installed with its ``.msg`` files.
    """
    done: dict[str, str] = {}
    _collect(type_name, done)
    first, *others = done.items()
    parts = [first[1]]
    for name, text in others:
        package, _, short = name.split("/")
        parts.append(f"{_SEPARATOR}\nMSG: {package}/{short}\n{text}")
    return "\n".join(parts)


def _collect(type_name: str, done: dict[str, str]) -> None:
    if type_name in done:
        return
    package, _, name = type_name.split("/")
    try:
        path = Path(get_package_share_directory(package)) / "msg" / f"{name}.msg"
        done[type_name] = path.read_text(encoding="utf-8")
    except (PackageNotFoundError, OSError):
        raise InertidError(f"message type '{type_name}': its definition is not installed; install {package}") from None
    for line in done[type_name].splitlines():
        fields = line.split("#")[0].split()
        if len(fields) < 2 or "=" in fields[0]:
            continue
        element = re.sub(r"(\[.*\]|<=\d+)+$", "", fields[0])
        if element in _PRIMITIVES:
            continue
        _collect(_full_name(element, package), done)


def _full_name(element: str, package: str) -> str:
    owner, _, name = element.rpartition("/")
    if not owner:
        return f"std_msgs/msg/{name}" if name == "Header" else f"{package}/msg/{name}"
    return f"{owner.split('/')[0]}/msg/{name}"
