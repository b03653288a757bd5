"""The parameter files in ``config/``, made from the declarations.

``python -m inertid_ros.nodes.parameter_files config`` writes them. Every parameter of every node stands in them with
its description, range and choices, so that they are the reference.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.options import Option, options
from inertid_ros.simulation.force_plates.catalogue import STANCES

from .calibrate.parameters import CalibrateOptions
from .excitation.parameters import ExcitationNodeOptions, MotionOptions
from .identifier.parameters import IdentifierOptions
from .recorder.parameters import RecorderOptions
from .replay.parameters import ReplayOptions
from .simulator.parameters import FaultOptions, SimulatorOptions

NODES: Mapping[str, tuple[tuple[type, str], ...]] = {
    "excitation": ((ExcitationNodeOptions, ""), (MotionOptions, "")),
    "recorder": ((RecorderOptions, ""),),
    "identifier": ((IdentifierOptions, ""), (Configuration, "")),
    "calibrate": ((CalibrateOptions, ""),),
    "replay": ((ReplayOptions, ""),),
    "simulator": ((SimulatorOptions, ""), (FaultOptions, "fault.")),
}
"""Node to the trees of its parameters and their prefixes."""

def _standing(name: str, **movement: Any) -> Mapping[str, Mapping[str, Any]]:
    """A simulated robot on force plates, and what the other nodes must know of it."""
    stance, base = STANCES[name], {"robot.base": "free", "robot.drive_terms": ()}
    topics = tuple(f"{plate.name}/wrench={plate.name}" for plate in stance.plates)
    return {
        "simulator": {
            "standing.robot": name,
            "state_hz": 100.0,
            "perturb": True,
            "perturbation.mass_uncertainty": 0.5,
            "perturbation.region_scale": 2.0,
            **base,
            **{f"standing.movement.{key}": value for key, value in movement.items()},
        },
        "recorder": {"wrenches": topics, "odometry": "odometry", "imu": "imu"},
        "identifier": {
            **base,
            "robot.plates": stance.plate_entries(),
            "prepare.base.motion_from": "imu",
            "prepare.base.imu_frame": stance.imu,
            "topics.wrenches": tuple(f"/{topic}" for topic in topics),
            "topics.odometry": "/odometry",
            "topics.imu": "/imu",
        },
        "calibrate": {"moved_by": "robot"},
    }


_PANDA = {"robot.locked_joints": ("panda_finger_joint1=0.0",)}
# The simulated robot shares the machine with everything else, which may hold it up.
_MOTION = {
    "excitation.duration_s": 20.0,
    "execution.horizon_s": 0.3,
    "monitor.state_timeout_s": 0.3,
    "monitor.max_age_s": 0.4,
    "monitor.min_rate_hz": 20.0,
    "monitor.tracking_tolerance": 0.3,
}

FILES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "calibrate": {"excitation": {}, "recorder": {}, "identifier": {}, "calibrate": {}},
    "simulate": {
        "simulator": {**_PANDA, "perturb": True},
        "excitation": {**_PANDA, **_MOTION},
        "recorder": {},
        "identifier": _PANDA,
        "calibrate": {},
    },
    "biped": _standing("biped"),
    "humanoid": _standing(
        "humanoid", joint_rad=0.3, torso_rad=(0.1, 0.1, 0.1), one_tilt_at_a_time=False, movements=30
    ),
    "replay": {"recorder": {}, "identifier": {"automatic": True}, "replay": {}},
}
"""File to its nodes and the values that differ from the defaults."""

_HEADS = {
    "calibrate": "Calibrate a robot (calibrate.launch.py). Every value is the default.",
    "simulate": "Calibrate a simulated Panda (simulate.launch.py).",
    "biped": "Calibrate a simulated biped on two force plates (stand.launch.py).",
    "humanoid": "Calibrate a simulated humanoid on one foot (stand.launch.py robot:=humanoid).",
    "replay": "Identify from a bag that is played (replay.launch.py).",
}
_KINDS = {bool: "bool", int: "int", float: "double", str: "string"}


def declared(node: str) -> Iterator[Option]:
    """Every parameter of a node."""
    for tree, prefix in NODES[node]:
        yield from options(tree, prefix)


def render(file: str) -> str:
    """Text of one of :data:`FILES`."""
    lines = [f"# {_HEADS[file]}", "# Each parameter: description, type, range. 'ros2 param describe' tells the same."]
    for node, values in FILES[file].items():
        lines += ["", f"/**/{node}:", "  ros__parameters:"]
        lines += _section(list(declared(node)), values)
    return "\n".join(lines) + "\n"


def _section(entries: list[Option], values: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    open_path: list[str] = []
    # Plain parameters first; YAML cannot reopen a section once another has begun.
    for entry in sorted(entries, key=lambda option: option.key.split(".")[:-1]):
        *path, name = entry.key.split(".")
        common = 0
        while common < min(len(path), len(open_path)) and path[common] == open_path[common]:
            common += 1
        for depth in range(common, len(path)):
            lines.append(f"{'  ' * (depth + 2)}{path[depth]}:")
        open_path = path
        indent = "  " * (len(path) + 2)
        lines += [f"{indent}# {entry.description} ({_kind(entry)})"]
        value = values.get(entry.key, entry.default)
        # ROS takes an empty list for one that was not given, and then the default counts.
        lines += [f"{indent}{name}: {_value(('',) if value == () != entry.default else value)}"]
    return lines


def _kind(entry: Option) -> str:
    kind = _KINDS[entry.kind] + ("[]" if entry.is_list else "")
    if entry.choices:
        return f"{kind}: {', '.join(entry.choices)}"
    if entry.minimum is None and entry.maximum is None:
        return kind
    low = "" if entry.minimum is None else f"{entry.minimum:g} "
    high = "" if entry.maximum is None else f" {entry.maximum:g}"
    return f"{kind}, {low}to{high}" if low and high else f"{kind}, {'from ' + low if low else 'up to' + high}".rstrip()


def _value(value: Any) -> str:
    plain = list(value) if isinstance(value, tuple) else value
    text: str = yaml.safe_dump(plain, default_flow_style=True, width=10_000)
    return text.replace("\n...", "").strip()


def main() -> int:
    """Write all files into the folder given."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "config")
    for name in FILES:
        (folder / f"{name}.yaml").write_text(render(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
