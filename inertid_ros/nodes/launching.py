"""What the launch files of this package share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, Substitution
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from inertid_ros.core.errors import ConfigurationError

from .joint_names_file import joint_names_file


def node(executable: str, parameters: dict[str, Any], common: Iterable[Any], **keywords: Any) -> Node:
    """Return a node of this package in the namespace of the argument ``namespace``.

    Parameters
    ----------
    executable : str
        Its name too.
    parameters : dict
        Of this node; they win over the common ones.
    common : iterable
        Parameter files and dictionaries of parameters of all nodes, of which the last wins.
    **keywords
        Of the action.
    """
    return Node(
        package="inertid_ros",
        executable=executable,
        name=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=[*common, parameters],
        output="screen",
        additional_env={"PYTHONUNBUFFERED": "1"},
        **keywords,
    )


def declared(arguments: Iterable[tuple[str, str, str]], **choices: Iterable[str]) -> list[DeclareLaunchArgument]:
    """Declare arguments: name, default and description of each, and by name the choices of those that have some."""
    return [
        DeclareLaunchArgument(name, default_value=value, description=about, choices=choices.get(name))
        for name, value, about in arguments
    ]


def text(argument: str) -> ParameterValue:
    """Return the value of an argument as text, also when it looks like a number."""
    return ParameterValue(LaunchConfiguration(argument), value_type=str)


def flag(argument: str) -> ParameterValue:
    """Return the value of an argument as true or false."""
    return ParameterValue(LaunchConfiguration(argument), value_type=bool)


def package_file(*parts: str) -> str:
    """Return the path of a file below this package's share directory, as `--show-args` is to tell it."""
    return str(Path(get_package_share_directory("inertid_ros"), *parts))


class ParameterFile(Substitution):
    """Path of the parameter file that an argument names; launch_ros itself starts nodes without a file that is absent.

    Parameters
    ----------
    argument : str
    otherwise : substitution, optional
        Path where the argument is empty.
    """

    def __init__(self, argument: str, otherwise: Any = "") -> None:
        super().__init__()
        self._argument, self._otherwise = argument, normalize_to_list_of_substitutions(otherwise)

    def perform(self, context: LaunchContext) -> str:
        """Return the path.

        Raises
        ------
        ConfigurationError
            There is no such file.
        """
        path = LaunchConfiguration(self._argument).perform(context)
        path = path or perform_substitutions(context, self._otherwise)
        if not Path(path).is_file():
            raise ConfigurationError(f"{self._argument}:={path}: there is no such parameter file; correct the path")
        return path


class JointNamesFile(Substitution):
    """Path of a parameter file with the names of joints that an argument gives.

    Parameters
    ----------
    names : LaunchConfiguration
        Text of the argument, see :func:`~.joint_names_file.joint_names_file`.
    """

    def __init__(self, names: LaunchConfiguration) -> None:
        super().__init__()
        self._names = names

    def perform(self, context: LaunchContext) -> str:
        """Write the file."""
        return joint_names_file(self._names.perform(context))
