"""Configuration from YAML: a plain file, or a ROS parameter file. Every key must be known in its section.

Also arguments of launch files: unknown arguments, arguments without effect, and names of joints.
"""

import difflib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, overload

import attrs
import yaml

from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats import read_text, read_yaml

from .configuration import Configuration, ExcitationConfiguration
from .nodes import NODES, declared
from .option_fields import options
from .structuring import KnownKeys, flat, structure

T = TypeVar("T", Configuration, ExcitationConfiguration)
_TREES = (Configuration, ExcitationConfiguration)
_SECTIONS = {section.name for tree in _TREES for section in attrs.fields(tree)}
# A parameter file may set a key for several nodes: the value of the identifier wins, then the excitation node's.
_PRECEDENCE = ("excitation", "identifier")
_OF_RCLPY = ("use_sim_time", "start_type_description_service")
_ALIKE = 0.88  # ratio of difflib: identifer is a misspelt identifier, but replayer is a node of another package


@overload
def load_configuration(path: str | Path) -> Configuration: ...
@overload
def load_configuration(path: str | Path, tree: type[T]) -> T: ...
def load_configuration(path: str | Path, tree: type = Configuration) -> Any:
    """Load the configuration from a YAML file: plain, or a ROS parameter file (``/**: ros__parameters: ...``).

    A file may hold options of other commands and nodes; they are checked but have no effect here.

    Raises ConfigurationError: the file does not exist or is not YAML, a key is unknown in its section, or a value does
    not fit.
    """
    where, content = str(path), _read(path)
    of_nodes = _is_of_nodes(content)
    values = _sections_of_nodes(content, where) if of_nodes else content
    if not of_nodes:
        _check_sections(values, where)
    options_of: dict[type, Any] = {}
    for known_tree in _TREES:
        sections = {section.name for section in attrs.fields(known_tree)}
        content_of_tree = {key: value for key, value in values.items() if str(key).partition(".")[0] in sections}
        options_of[known_tree] = structure(known_tree, content_of_tree, where, listed=of_nodes)
    if of_nodes:
        check_nodes(content, where)
    return options_of[tree]


def check_parameter_file(path: str | Path) -> None:
    """Refuse a ROS parameter file with a parameter that its node or section does not have.

    The ConfigurationError names file, node and key, and the closest known key.
    """
    content = _read(path)
    if content and not _is_of_nodes(content):
        raise ConfigurationError(f"{path}: is not a ROS parameter file; nest keys below '/**:' and 'ros__parameters:'")
    check_nodes(content, str(path))


def check_nodes(content: Mapping[Any, Any], where: str) -> None:
    """Refuse misspelt keys and nodes in a ROS parameter file, and parameters of another node.

    Blocks of other packages' nodes are ignored. Keys for all nodes, below ``/**``, may belong to any node.
    """
    for name, block in content.items():
        node = str(name).rpartition("/")[2]
        if "*" not in node and node not in NODES:
            if close := difflib.get_close_matches(node, NODES, n=1, cutoff=_ALIKE):
                raise ConfigurationError(f"{where}: {name} is not a node of this package; did you mean {close[0]}?")
            continue
        for key, _ in flat(_parameters(block, name, where)):
            check_parameter(key, "" if "*" in node else node, where)


def check_parameter(key: str, node: str, where: str) -> None:
    """Refuse a parameter that ``node`` lacks, or that all nodes lack if ``node`` is empty; suggest the closest key."""
    if key in known_keys(node) or key in _OF_RCLPY or key.startswith("qos_overrides."):
        return
    if owners := owners_of(key):
        raise ConfigurationError(
            f"{where}: {key} is a parameter of {' and '.join(owners)}, not of {node}; move it below /**/{owners[0]}")
    if (nearest := known_keys().nearest(key)) and node and nearest not in known_keys(node):
        owner = " and ".join(owners_of(nearest))
        raise ConfigurationError(f"{where}: {key} is not an option of {node}; did you mean {nearest} of {owner}?")
    known_keys(node).check(key, where)


def owners_of(key: str) -> list[str]:
    """Nodes that have the parameter ``key``."""
    return [node for node in NODES if key in known_keys(node)]


@cache
def known_keys(node: str = "") -> KnownKeys:
    """Keys of the parameters of a node, or of all nodes if ``node`` is empty."""
    nodes = [node] if node else NODES
    return KnownKeys(chain.from_iterable(declared(name) for name in nodes))


def _read(path: str | Path) -> Mapping[Any, Any]:
    """Read a YAML file that holds a mapping; an empty file gives an empty mapping."""
    path = Path(path)
    try:
        content = read_yaml(read_text(path))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such configuration file; check the path") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}); give a YAML file") from None
    except FormatError as error:
        raise ConfigurationError(f"{path}: {error}; correct it") from None
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{path}: holds no keys; write for example 'prepare: {{cutoff_hz: 5.0}}'")
    return content


def _is_of_nodes(content: Mapping[Any, Any]) -> bool:
    return any(isinstance(block, Mapping) and "ros__parameters" in block for block in content.values())


def _check_sections(values: Mapping[Any, Any], where: str) -> None:
    """Refuse keys of a plain file that belong to no section."""
    for key, _ in flat(values):
        if key.partition(".")[0] in _SECTIONS:
            continue
        if owners := owners_of(key):
            raise ConfigurationError(
                f"{where}: {key} is not an option of commands, but of nodes; write it below '/**/{owners[0]}:' and"
                " 'ros__parameters:'")
        KnownKeys(chain.from_iterable(options(tree) for tree in _TREES)).check(key, where)


def _parameters(block: object, name: object, where: str) -> Mapping[Any, Any]:
    parameters = block.get("ros__parameters") if isinstance(block, Mapping) else None
    if not isinstance(parameters, Mapping):
        raise ConfigurationError(f"{where}: {name} has no ros__parameters; nest its keys below ros__parameters")
    return parameters


def _sections_of_nodes(content: Mapping[Any, Any], where: str) -> dict[str, object]:
    """Options in sections of a configuration, by dotted key, merged from the blocks of all nodes."""

    def order(name: str) -> tuple[int, bool]:
        last = name.rpartition("/")[2]
        return (_PRECEDENCE.index(last) if last in _PRECEDENCE else -1, "*" not in name)

    merged: dict[str, object] = {}
    blocks = {str(node): block for node, block in content.items()}
    for node in sorted(blocks, key=order):
        parameters = flat(_parameters(blocks[node], node, where))
        merged |= {key: value for key, value in parameters if "." in key and key.partition(".")[0] in _SECTIONS}
    return merged


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
