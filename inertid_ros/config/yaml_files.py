"""Configuration from YAML: a plain file, or a ROS parameter file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import attrs

from inertid_ros.config.schema.structuring import flat, structure
from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats.yaml_text import read_yaml

from .configuration import Configuration, ExcitationConfiguration

T = TypeVar("T", Configuration, ExcitationConfiguration)
_SECTIONS = {section.name for tree in (Configuration, ExcitationConfiguration) for section in attrs.fields(tree)}
# A parameter file may set the same key for several nodes; the node that does this work has the last word.
_PRECEDENCE = ("excitation", "identifier")


@overload
def load_configuration(path: str | Path) -> Configuration: ...
@overload
def load_configuration(path: str | Path, tree: type[T]) -> T: ...
def load_configuration(path: str | Path, tree: type = Configuration) -> Any:
    """Configuration of a YAML file: plain, or a ROS parameter file (``/**: ros__parameters: ...``).

    Sections that belong to the other tree are left alone, so that one file serves both. Of a parameter file only
    these sections count, as its other keys belong to the nodes.

    Raises
    ------
    ConfigurationError
        No such file, not YAML, an unknown key, or a value that does not fit.
    """
    path = Path(path)
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such configuration file; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.__class__.__name__}); give a YAML file") from None
    except FormatError as error:
        raise ConfigurationError(f"{path}: {error}; correct it") from None
    values, of_nodes = _values(content, str(path))
    others = _SECTIONS - {section.name for section in attrs.fields(tree)}
    own = {key: value for key, value in values.items() if str(key).partition(".")[0] not in others}
    return structure(tree, own, str(path), listed=of_nodes)


def _values(content: object, where: str) -> tuple[Mapping[Any, Any], bool]:
    """Keys to values of parsed YAML, and whether they are those of nodes."""
    if content is None:
        return {}, False
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{where}: holds no keys; write for example 'prepare: {{cutoff_hz: 5.0}}'")
    if any(isinstance(block, Mapping) and "ros__parameters" in block for block in content.values()):
        return _ros_parameters(content, where), True
    return content, False


def _ros_parameters(content: Mapping[Any, Any], where: str) -> dict[str, object]:
    """Our sections of all nodes' blocks."""

    def order(name: str) -> tuple[int, bool]:
        last = name.rpartition("/")[2]
        return (_PRECEDENCE.index(last) if last in _PRECEDENCE else -1, "*" not in name)

    merged: dict[str, object] = {}
    blocks = {str(node): block for node, block in content.items()}
    for node in sorted(blocks, key=order):
        block = blocks[node]
        parameters = block.get("ros__parameters") if isinstance(block, Mapping) else None
        if not isinstance(parameters, Mapping):
            raise ConfigurationError(f"{where}: {node} has no ros__parameters; nest its keys below ros__parameters")
        merged |= {key: value for key, value in flat(parameters) if "." in key and key.partition(".")[0] in _SECTIONS}
    return merged
