"""Which parameters each node declares, found without ROS: from calls in the node's source."""

import ast
import importlib
from pathlib import Path
from typing import Any

import yaml
from support.paths import CONFIG, ROOT

from inertid_ros.config.option_fields import Option, options
from inertid_ros.config.structuring import flat
from inertid_ros.nodes import MODULES

DECLARING = ("declare", "run_flow")


def node_names() -> list[str]:
    """Nodes that declare parameters."""
    return sorted(node for node in MODULES if _declarations(_path(node)))


def declared_options(node: str) -> dict[str, Option]:
    """Options of a node by parameter name."""
    path = _path(node)
    origins = _imports(path)
    found: dict[str, Option] = {}
    for tree, prefix in _declarations(path):
        module = importlib.import_module(origins[tree], package=MODULES[node].rpartition(".")[0])
        found |= {entry.key: entry for entry in options(getattr(module, tree), prefix)}
    return found


def parameters_in(file: str, node: str) -> dict[str, Any]:
    """Parameters of a node, by name, in a file that ships."""
    content = yaml.safe_load((CONFIG / f"{file}.yaml").read_text(encoding="utf-8"))
    return dict(flat(content[f"/**/{node}"]["ros__parameters"]))


def _path(node: str) -> Path:
    return ROOT.joinpath(*MODULES[node].split(".")).with_suffix(".py")


def _declarations(path: Path) -> list[tuple[str, str]]:
    """Option class and prefix of every `declare(self, Class, ..., prefix="...")` and `run_flow(name, Class, ...)`."""
    found = []
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in DECLARING:
            tree = call.args[1]
            prefix = next((k.value for k in call.keywords if k.arg == "prefix"), ast.Constant(""))
            found.append((ast.unparse(tree), str(ast.literal_eval(prefix))))
    return found


def _imports(path: Path) -> dict[str, str]:
    """Module that each imported name comes from."""
    return {
        alias.asname or alias.name: "." * node.level + (node.module or "")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
