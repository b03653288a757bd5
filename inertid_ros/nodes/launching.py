"""Functions shared by the launch files of this package."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch import Condition, LaunchContext, LaunchDescription, LaunchDescriptionEntity, Substitution
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.logging import launch_config
from launch.substitutions import LaunchConfiguration
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from inertid_ros.config.yaml_files import check_arguments, check_parameter_file, check_switches, write_joint_names
from inertid_ros.core.errors import ConfigurationError

JOINT_NAMES = (
    "joint_names",
    "",
    "map from joint names in recordings and controllers to names in the URDF, as in '{fer_*: panda_*}'")
"""Name, default and description of the launch argument for nodes that use joint names."""


def node(executable: str, parameters: dict[str, Any], common: Iterable[Any], **keywords: Any) -> Node:
    """Return a node of this package, named like its executable, in the namespace of the launch argument ``namespace``.

    ``common`` are parameter files and dictionaries of parameters for all nodes; later entries override earlier entries,
    and ``parameters`` override ``common``. ``keywords`` are passed to the launch action.
    """
    return Node(
        package="inertid_ros", executable=executable, name=executable, namespace=LaunchConfiguration("namespace"),
        parameters=[*common, parameters], output="screen", additional_env={"PYTHONUNBUFFERED": "1"}, **keywords)


def excitation(common: Iterable[Any], condition: Condition | None = None) -> LaunchDescriptionEntity:
    """Return the excitation node with the launch argument ``urdf``, and ``controller`` unless that is empty."""

    def make(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        return [
            node("excitation", {"urdf": text("urdf"), **given(context, controller=str)}, common, condition=condition)]

    return OpaqueFunction(function=make)


def given(context: LaunchContext, **types: type) -> dict[str, ParameterValue]:
    """Return the launch arguments ``types`` that are not empty as parameters, which override the parameter files."""
    return {
        name: ParameterValue(LaunchConfiguration(name), value_type=value_type)
        for name, value_type in types.items()
        if LaunchConfiguration(name).perform(context)}


def ended_by(flow: Node, what: str, reason: str, condition: Condition | None = None) -> LaunchDescriptionEntity:
    """Return the handler that ends all nodes once a flow has ended.

    ``what`` is the subject of the message after a failure, ``reason`` the log message after a success. If ``reason`` is
    empty, the nodes continue after a success.
    """

    def end(event: ProcessExited, context: LaunchContext) -> EmitEvent | None:
        if context.is_shutdown:  # for example by Ctrl-C, not a failure
            return None
        if event.returncode:  # an exception makes `ros2 launch` end with a status other than 0
            raise RuntimeError(f"{what} ended with status {event.returncode}; see its output above")
        return EmitEvent(event=Shutdown(reason=reason)) if reason else None

    return RegisterEventHandler(OnProcessExit(target_action=flow, on_exit=end), condition=condition)


def declared(arguments: Iterable[tuple[str, str, str]], **choices: Iterable[str]) -> list[DeclareLaunchArgument]:
    """Declare launch arguments (name, default, description); ``choices`` are the allowed values by name."""
    return [
        DeclareLaunchArgument(name, default_value=value, description=about, choices=choices.get(name))
        for name, value, about in arguments]


def described(
    file: str, entities: Iterable[LaunchDescriptionEntity], switches: Mapping[str, Sequence[str]] | None = None
) -> LaunchDescription:
    """Return the description of a launch file; the launch fails if an argument is unknown or would have no effect.

    ``switches`` maps a switch to the arguments that have an effect only if the switch is true.
    """

    def check(context: LaunchContext) -> None:
        arguments = description.get_launch_arguments()
        check_arguments(sys.argv, file, [argument.name for argument in arguments])
        defaults = {entry.name: perform_substitutions(context, entry.default_value or []) for entry in arguments}
        check_switches({**defaults, **context.launch_configurations}, defaults, file, switches or {})

    description = LaunchDescription([OpaqueFunction(function=check), *entities])
    return description


def text(argument: str) -> ParameterValue:
    """Return the value of an argument as text, even if it looks like a number."""
    return ParameterValue(LaunchConfiguration(argument), value_type=str)


def flag(argument: str) -> ParameterValue:
    """Return the value of an argument as true or false."""
    return ParameterValue(LaunchConfiguration(argument), value_type=bool)


def package_file(*parts: str) -> str:
    """Return the path of a file below this package's share directory, as in the output of `--show-args`."""
    return str(Path(get_package_share_directory("inertid_ros"), *parts))


class ParameterFile(Substitution):
    """Path of the parameter file in a launch argument, or ``otherwise`` if the argument is empty.

    The file is checked, because launch_ros would start nodes even if the file were missing.
    """

    def __init__(self, argument: str, otherwise: Any = "") -> None:
        super().__init__()
        self._argument, self._otherwise = argument, normalize_to_list_of_substitutions(otherwise)

    def perform(self, context: LaunchContext) -> str:
        """Return the path; raise ConfigurationError if the file is missing or sets an unknown parameter."""
        path = LaunchConfiguration(self._argument).perform(context)
        path = path or perform_substitutions(context, self._otherwise)
        if not os.path.isfile(path):
            raise ConfigurationError(f"{self._argument}:={path}: there is no such parameter file; correct the path")
        check_parameter_file(path)
        return path


def common_parameters(*others: Any) -> tuple[Any, ...]:
    """Return parameters for all nodes: the files ``defaults`` and ``config``, ``others``, and ``use_sim_time``."""
    files = ParameterFile("defaults"), ParameterFile("config", LaunchConfiguration("defaults"))
    return (*files, *others, {"use_sim_time": flag("use_sim_time")})


class JointNamesFile(Substitution):
    """Path of a parameter file with the launch argument ``joint_names``, written to the log directory of the launch."""

    def perform(self, context: LaunchContext) -> str:
        return str(write_joint_names(LaunchConfiguration("joint_names").perform(context), Path(launch_config.log_dir)))
