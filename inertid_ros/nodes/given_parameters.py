"""Parameters that were given to a node: each must be one of its own, and have an effect."""

import sys
from collections.abc import Iterator, Sequence

from rclpy.node import Node

from inertid_ros.config.schema.effects import check_effects
from inertid_ros.config.yaml_files import check_parameter, check_parameter_file
from inertid_ros.ros.parameters import parameter_values

from .parameter_files.node_options import EFFECTS, NODES, declared

_FILES, _SINGLE = ("--params-file",), ("-p", "--param")


def check_given_parameters(node: Node, arguments: Sequence[str] | None = None) -> None:
    """Refuse what a node would ignore, once it has declared its parameters.

    A parameter for all nodes (``/**``) may belong to another one. What stands below the name of a node, or is given to
    it directly, must be its own.

    Parameters
    ----------
    node : Node
    arguments : sequence of str, optional
        Of the command line, by default of this process.

    Raises
    ------
    ConfigurationError
        A parameter that is not declared, with what was probably meant, or one without effect beside another.
    """
    arguments = sys.argv if arguments is None else arguments
    kind, where = _kind(node), node.get_fully_qualified_name()
    for file in _values_of(_FILES, arguments):
        check_parameter_file(file)
    direct = {text.partition(":=")[0].rpartition(":")[2] for text in _values_of(_SINGLE, arguments)}
    for key in node._parameter_overrides:
        if not node.has_parameter(key):
            check_parameter(key, kind if key in direct else "", where)
    check_effects(EFFECTS, dict(parameter_values(node)), declared(kind), where)


def _kind(node: Node) -> str:
    """Which of the package's nodes it is, whatever its name."""
    own = set(node._parameters)
    return next(kind for kind in NODES if all(entry.key in own for entry in declared(kind) if not entry.names))


def _values_of(options: Sequence[str], arguments: Sequence[str]) -> Iterator[str]:
    """Yield what follows options of a command line."""
    return (value for option, value in zip(arguments, arguments[1:], strict=False) if option in options)
