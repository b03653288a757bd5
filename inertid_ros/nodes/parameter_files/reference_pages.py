"""The reference of configuration and parameters in ``docs/reference``, made from the option classes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.schema.option_fields import Option, is_section, options

from .node_options import NODES, declared
from .yaml_text import allowed, flow_value, ros_type

_MADE = "<!-- Made by python -m inertid_ros.nodes.parameter_files config --docs docs/reference; do not edit. -->"
_SPELT = {"bool": "true or false", "int": "whole number", "double": "number", "string": "text"}

_CONFIGURATION = f"""{_MADE}
# Configuration

The YAML file of `inertid --config` holds these sections, and only the keys that differ from their defaults. A ROS
parameter file serves as well ([parameters of the nodes](node_parameters.md)); `--set section.key=value` changes single
values. What has a name of its own is a mapping from names to fields, `<name>` below:

```yaml
robot:
  base: free
  locked_joints: {{finger_joint1: 0.02}}
  plates:
    left: {{frame: left_foot, xyz: [0.0, 0.1, 0.0]}}
    right: {{frame: right_foot, xyz: [0.0, -0.1, 0.0]}}
  couplings:
    wrist: {{joints: [joint_5, joint_6], ratios: [1.0, 1.0]}}
topics:
  wrenches:
    left: {{topic: /left/wrench, frame: left}}
    right: {{topic: /right/wrench, frame: right}}
constraints:
  mass: {{link3: [1.0, 2.0]}}
```

Every key must be known at its place, also in sections that another command reads. An option that is given and has no
effect beside another one, such as `excitation.intervals` of a Fourier motion, is an error that names both; a value that
is the default counts as not given.

The models are the classes of {{py:mod}}`inertid_ros.config`, made with attrs: python3-attrs is a rosdep key on every
platform of ROS 2, whereas pydantic is still 1.10 on Ubuntu 24.04 and cattrs has no key.
"""

_NODES = f"""{_MADE}
# Parameters of the nodes

What has a name of its own is given as in ros2_control: a list of names, and the fields of each name in the list. YAML
cannot hold both at one key, so that the list has one of its own:

```yaml
/**/identifier:
  ros__parameters:
    robot:
      plate_names: [left]
      plates:
        left: {{frame: left_foot, xyz: [0.0, 0.1, 0.0]}}
```

A name that is given but not listed is an error, as is a listed one without its required fields. Lists of names are
fixed while a node runs.

What stands below the name of a node must be a parameter of that node; below `/**`, of any node of this package. A
parameter that no node has there, or that has no effect beside another one, is an error: of launch files before anything
starts, else of the node, which ends with status 2. Launch files also refuse arguments that they do not have. Blocks of
other packages' nodes are left alone, as are `use_sim_time` and `qos_overrides`.
"""


def configuration_page() -> str:
    """``configuration.md``: keys of plain YAML."""
    sections: dict[str, tuple[str, list[Option]]] = {}
    for tree in (Configuration, ExcitationConfiguration):
        for field in attrs.fields(attrs.resolve_types(tree)):
            assert is_section(field)
            found = [entry for entry in options(field.type, f"{field.name}.") if not entry.lists]
            sections[field.name] = (str(field.type.__doc__).partition("\n")[0], found)
    lines = [_CONFIGURATION]
    for name, (summary, found) in sections.items():
        lines += [f"## {name}", "", summary, "", *_table(found, "key", lambda entry: _plain(ros_type(entry))), ""]
    return "\n".join(lines).rstrip() + "\n"


def node_parameters_page() -> str:
    """``node_parameters.md``: ROS parameters of every node."""
    lines = [_NODES]
    for node in NODES:
        lines += [f"## {node}", "", *_table(declared(node), "parameter", ros_type), ""]
    return "\n".join(lines).rstrip() + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration_page,
    "node_parameters.md": node_parameters_page,
}
"""File to what writes it."""


def _table(rows: Iterable[Option], first: str, type_of: Callable[[Option], str]) -> list[str]:
    lines = [f"| {first} | type | default | range | unit | description |", "|---|---|---|---|---|---|"]
    for entry in rows:
        cells: list[Any] = [
            f"`{entry.key}`", type_of(entry), f"`{flow_value(entry.default)}`", allowed(entry), entry.unit,
            entry.description,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def _plain(name: str) -> str:
    return f"list of {_SPELT[name[:-2]]}" if name.endswith("[]") else _SPELT[name]
