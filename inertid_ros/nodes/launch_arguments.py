"""Arguments of launch files on the command line: `ros2 launch` itself takes any name and ignores unknown ones."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from inertid_ros.core.errors import ConfigurationError


def check_arguments(command: Sequence[str], file: str, names: Collection[str]) -> None:
    """Refuse an argument that a launch file does not declare.

    Where another launch file includes this one, the arguments are those of the other, and are left alone.

    Parameters
    ----------
    command : sequence of str
        Words of the command line, ``ros2 launch PACKAGE FILE NAME:=VALUE ...``.
    file : str
        Path of the launch file.
    names : collection of str
        Of the arguments that it and those that it includes declare.

    Raises
    ------
    ConfigurationError
        Names the argument, and what was probably meant.
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
            remedy = f"did you mean {close[0]}:=?" if close else f"known are {', '.join(names)}"
            raise ConfigurationError(f"{path.name}: {name}:= is not one of its arguments; {remedy}")


def check_switches(
    values: Mapping[str, str], defaults: Mapping[str, str], file: str, switches: Mapping[str, Sequence[str]]
) -> None:
    """Refuse arguments that have no effect beside a switch that is off.

    Parameters
    ----------
    values, defaults : mapping of str to str
        Arguments as they are, and as they are where nobody gives them.
    file : str
        Path of the launch file.
    switches : mapping of str to sequence of str
        Switch to the arguments that need it to be true.

    Raises
    ------
    ConfigurationError
        Names both.
    """
    for switch, names in switches.items():
        if values[switch].lower() in ("true", "1"):
            continue
        for name in names:
            if values[name] != defaults[name]:
                raise ConfigurationError(
                    f"{Path(file).name}: {name}:={values[name]} has no effect while {switch}:={values[switch]};"
                    " leave one of them out"
                )
