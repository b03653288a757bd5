"""Parameter files and the reference of all parameters, made from the options of the nodes.

``python -m inertid_ros.nodes.tools.parameter_files config --docs docs/reference`` writes both.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.nodes import NODES, declared
from inertid_ros.config.option_fields import REQUIRED, Option, is_section, options
from inertid_ros.config.structuring import flow
from inertid_ros.core.outputs import write_file
from inertid_ros.simulation.example_robots import STANCES


def _legged(name: str, **movement: Any) -> Mapping[str, Mapping[str, Any]]:
    """Values of all nodes for a simulated robot on force plates."""
    stance, base = STANCES[name], {"robot.base": "free", "robot.drive_terms": ()}
    topics = [plate.name for plate in stance.plates]
    return {
        "simulator": {
            "legged_robot.robot": name,
            "state_hz": 100.0,
            "perturb": True,
            "perturbation.mass_uncertainty": 0.5,
            "perturbation.region_scale": 2.0,
            **base,
            **{f"legged_robot.movement.{key}": value for key, value in movement.items()},
        },
        "recorder": {
            "wrenches": {plate: {"topic": f"{plate}/wrench", "frame": plate} for plate in topics},
            "odometry": "odometry",
            "imu": "imu",
        },
        "identifier": {
            **base,
            "robot.plates": {name: attrs.asdict(plate) for name, plate in stance.plate_options().items()},
            "prepare.base.motion_from": "imu",
            "prepare.base.imu_frame": stance.imu,
            "topics.wrenches": {plate: {"topic": f"/{plate}/wrench", "frame": plate} for plate in topics},
            "topics.odometry": "/odometry",
            "topics.imu": "/imu",
        },
        "calibrate": {"moved_by": "robot"},
    }


_PANDA = {"robot.locked_joints": {"panda_finger_joint1": 0.0}}

_ADAPTED = {
    "control.adapted_links": ("panda_link7",),
    "control.longest_pause_s": 0.2,
    "monitor.tracking_tolerance": 0.3,
    "monitor.state_timeout_s": 0.2,
    "monitor.max_age_s": 0.4,
    "monitor.min_rate_hz": 20.0,
}
_READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)

FILES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "calibrate": {"excitation": {}, "recorder": {}, "identifier": {}, "calibrate": {}},
    "simulate": {
        "simulator": {**_PANDA, "perturb": True},
        "excitation": _PANDA,
        "recorder": {},
        "identifier": _PANDA,
        "calibrate": {},
    },
    "biped": _legged("biped"),
    "humanoid": _legged(
        "humanoid", joint_rad=0.3, torso_rad=(0.1, 0.1, 0.1), one_tilt_at_a_time=False, movements=30
    ),
    "online": {"online": {}},
    "payload": {
        # The motion is planned for a robot without the payload.
        "excitation": {
            "limits.velocity_fraction": 0.4, "limits.effort_fraction": 0.5, "excitation.duration_s": 8.0,
            "excitation.base_frequency_hz": 0.125,
        },
        "online": {},
        "measure_payload": {},
    },
    "replay": {"recorder": {}, "identifier": {"automatic": True}, "replay": {}},
    "adapt_hardware": {"adaptation": {}},
    "adapt_simulated": {
        "simulator": {**_PANDA, "start": _READY, "state_hz": 500.0},
        "adaptation": {**_PANDA, **_ADAPTED, "autostart": True},
    },
}
"""File to its nodes and the values that differ from the defaults."""

_HEADS = {
    "calibrate": "Calibrate a robot (calibrate.launch.py).",
    "simulate": "Calibrate a simulated Panda (simulate.launch.py).",
    "biped": "Calibrate a simulated biped on two force plates (stand.launch.py).",
    "humanoid": "Calibrate a simulated humanoid on one foot (stand.launch.py robot:=humanoid).",
    "online": "Follow a calibrated robot while it moves (online.launch.py).",
    "payload": "Move a calibrated robot to identify what it holds (payload.launch.py).",
    "replay": "Identify from a bag that is played (replay.launch.py).",
    "adapt_hardware": "Control an arm by torques while parameters adapt (adapt.launch.py).",
    "adapt_simulated": "Control a simulated Panda by torques (adapt.launch.py robot:=simulated).",
}
SHOWN: Mapping[str, tuple[str, ...]] = {
    "excitation": (
        "controller", "limits.position_margin", "limits.velocity_fraction", "limits.effort_fraction",
        "excitation.duration_s", "excitation.mounting", "monitor.tracking_tolerance",
    ),
    "recorder": ("directory", "write_bag"),
    "identifier": ("output_directory", "prepare.cutoff_hz", "identify.prior"),
    "calibrate": ("rounds", "confirm", "speed_scale"),
    "online": ("result", "time_constant_s", "payload.frame", "payload.largest_mass"),
    "measure_payload": ("frame", "duration_s", "speed_scale"),
    "replay": ("bag", "rate", "record"),
    "simulator": ("state_hz", "perturb"),
    "adaptation": ("result", "controller", "autostart", "control.bandwidth", "monitor.tracking_tolerance"),
}  # fmt: skip
"""Parameters of a node that users set most; files hold them with their default, too."""
_MADE = "<!-- Made by python -m inertid_ros.nodes.tools.parameter_files config --docs docs/reference; do not edit. -->"
LINE_LENGTH = 120
_PLAIN_TYPES = {"bool": "true or false", "int": "whole number", "double": "number", "string": "text"}
_ROS_TYPES = {bool: "bool", int: "int", float: "double", str: "string"}


_CONFIGURATION_HEAD = f"""{_MADE}
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
"""

_NODES_HEAD = f"""{_MADE}
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


def render(file: str) -> str:
    """Return the text of one of :data:`FILES`."""
    lines = [f"# {_HEADS[file]}", "# All parameters, with type and range, are in docs/reference/node_parameters.md."]
    for node, values in FILES[file].items():
        lines += ["", f"/**/{node}:", "  ros__parameters:", *_section(node, values)]
    return "\n".join(lines) + "\n"


def ros_type(entry: Option) -> str:
    """Return the type of a ROS parameter, such as ``double[]``."""
    return _ROS_TYPES[entry.scalar] + ("[]" if entry.is_list else "")


def allowed(entry: Option) -> str:
    """Return choices or range; empty if every value is allowed."""
    if entry.choices:
        return ", ".join(choice or "''" for choice in entry.choices)
    if entry.minimum is None and entry.maximum is None:
        return ""
    if entry.minimum is None or entry.maximum is None:
        return f"from {entry.minimum:g}" if entry.maximum is None else f"up to {entry.maximum:g}"
    return f"{entry.minimum:g} to {entry.maximum:g}"


def flow_value(value: Any) -> str:
    """Return a default as YAML on one line."""
    return "required" if value is REQUIRED else flow(value)


def _section(node: str, values: Mapping[str, Any]) -> list[str]:
    """Lines of a node's parameters: nested keys, with their description or its first clause if there is room."""
    lines: list[str] = []
    open_path: list[str] = []
    # Plain parameters first; YAML cannot reopen a section once another has begun.
    for key, value, description in sorted(_entries(node, values), key=lambda entry: entry[0].split(".")[:-1]):
        *path, name = key.split(".")
        common = len(os.path.commonprefix([path, open_path]))
        lines += [f"{'  ' * (depth + 2)}{path[depth]}:" for depth in range(common, len(path))]
        open_path = path
        line = f"{'  ' * (len(path) + 2)}{name}: {flow_value(value)}"
        comments = (f"  # {description}", f"  # {re.split('[:;]', description)[0]}") if description else ()
        lines.append(next((line + text for text in comments if len(line + text) <= LINE_LENGTH), line))
    return lines


def _entries(node: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Key, value and description of what differs from the defaults or is in SHOWN; named elements without one."""
    for entry in declared(node):
        if entry.lists in values:
            yield entry.key, list(values[entry.lists]), entry.description
            yield from ((f"{entry.lists}.{name}", content, "") for name, content in values[entry.lists].items())
        elif entry.key in values or entry.key in SHOWN[node]:
            yield entry.key, values.get(entry.key, entry.default), entry.description


def configuration_page() -> str:
    """Return ``configuration.md``: keys of plain YAML."""
    sections: dict[str, tuple[str, list[Option]]] = {}
    for tree in (Configuration, ExcitationConfiguration):
        for field in attrs.fields(attrs.resolve_types(tree)):
            assert is_section(field)
            entries = [entry for entry in options(field.type, f"{field.name}.") if not entry.lists]
            sections[field.name] = (str(field.type.__doc__).partition("\n")[0], entries)
    lines = [_CONFIGURATION_HEAD]
    for name, (summary, rows) in sections.items():
        lines += [f"## {name}", "", summary, "", *_table(rows, "key", lambda entry: _plain(ros_type(entry))), ""]
    return "\n".join(lines).rstrip() + "\n"


def node_parameters_page() -> str:
    """Return ``node_parameters.md``: ROS parameters of every node."""
    lines = [_NODES_HEAD]
    for node in NODES:
        lines += [f"## {node}", "", *_table(declared(node), "parameter", ros_type), ""]
    return "\n".join(lines).rstrip() + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration_page,
    "node_parameters.md": node_parameters_page,
}
"""Reference page to the function that makes it."""


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
    return f"list of {_PLAIN_TYPES[name[:-2]]}" if name.endswith("[]") else _PLAIN_TYPES[name]


def main() -> int:
    """Write all files into the folders that the command line names."""
    parser = argparse.ArgumentParser(description="write parameter files, and with --docs their reference")
    parser.add_argument("folder", nargs="?", default="config", help="of the parameter files")
    parser.add_argument("--docs", help="folder of the reference pages")
    arguments = parser.parse_args()
    for name in FILES:
        write_file(Path(arguments.folder) / f"{name}.yaml", render(name).encode(), force=True)
    if arguments.docs:
        for name, page in PAGES.items():
            write_file(Path(arguments.docs) / name, page().encode(), force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
