"""What the launch files of this package share."""

from collections.abc import Iterable
from typing import Any

from launch import LaunchContext, Substitution
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

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


def declared(arguments: Iterable[tuple[str, Any, str]]) -> list[DeclareLaunchArgument]:
    """Declare arguments: name, default and description of each."""
    return [DeclareLaunchArgument(name, default_value=value, description=about) for name, value, about in arguments]


def text(argument: str) -> ParameterValue:
    """Return the value of an argument as text, also when it looks like a number."""
    return ParameterValue(LaunchConfiguration(argument), value_type=str)


def flag(argument: str) -> ParameterValue:
    """Return the value of an argument as true or false."""
    return ParameterValue(LaunchConfiguration(argument), value_type=bool)


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
