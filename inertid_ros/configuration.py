"""The configuration: one tree of options, read from YAML, the same for command line and nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from . import entries
from .data.bags import BagTopics
from .data.prepare import PrepareOptions
from .identification.constraints import Constraints
from .identification.identify import IdentifyOptions
from .options import ConfigurationError, build, option
from .robot.collision import collision_ellipsoids
from .robot.layout import DRIVE_TERMS
from .robot.model import ModelOptions, RobotModel


@dataclass(frozen=True)
class RobotOptions:
    """How to read the URDF."""

    locked_joints: tuple[str, ...] = option(
        (), "joints held still, each JOINT=POSITION [rad or m]; what they carry moves with their parent"
    )
    drive_terms: tuple[str, ...] = option(
        DRIVE_TERMS, "drive parameters identified per joint", choices=DRIVE_TERMS
    )
    couplings: tuple[str, ...] = option(
        (),
        "drives that turn with several joints and have a rotor and friction of their own, each"
        " NAME=JOINT:RATIO,JOINT:RATIO such as wrist=joint_5:1,joint_6:1",
    )
    gravity: tuple[float, ...] = option(
        (0.0, 0.0, -9.81), "in the frame of the root link [m/s^2]", minimum=-100.0, maximum=100.0
    )

    def __post_init__(self) -> None:
        if len(self.gravity) != 3:
            raise ConfigurationError(f"robot.gravity has {len(self.gravity)} numbers; give x, y, z")
        self.model_options()

    def model_options(self) -> ModelOptions:
        """The same, for :func:`~inertid_ros.robot.model.load_model`."""
        x, y, z = self.gravity
        locked, couplings = entries.locked_joints(self.locked_joints), entries.couplings(self.couplings)
        return ModelOptions(locked, self.drive_terms, (x, y, z), couplings)


@dataclass(frozen=True)
class ConstraintOptions:
    """What is known of the robot for certain, beyond physical consistency."""

    collision_shapes: bool = option(False, "a link's mass lies within ellipsoids around its collision shapes")
    collision_margin: float = option(1.0, "factor on the axes of these ellipsoids", minimum=0.1, maximum=10.0)
    mesh_folders: tuple[str, ...] = option((), "folders in which package:// meshes of collision shapes are looked for")
    mass: tuple[str, ...] = option((), "ranges of masses [kg], each LINK=LOWEST:HIGHEST")
    total_mass: float = option(0.0, "of all moving links [kg]; 0 where unknown", minimum=0.0, maximum=1e6)
    at_most: tuple[str, ...] = option((), "highest values of parameters (SI), each PARAMETER=VALUE")
    fixed: tuple[str, ...] = option((), "parameters held at their value in the URDF, such as link3.m")
    equal: tuple[str, ...] = option((), "parameters of the same value, each PARAMETER=PARAMETER")
    mirrored: tuple[str, ...] = option(
        (), "links that mirror one another across the plane normal to an axis, each LINK=LINK:AXIS"
    )

    def __post_init__(self) -> None:
        self._facts()

    def constraints(self, model: RobotModel) -> Constraints:
        """The same, for :func:`~inertid_ros.identification.identify.identify`."""
        inside = collision_ellipsoids(model, self.mesh_folders, self.collision_margin) if self.collision_shapes else {}
        return replace(self._facts(), inside=inside)

    def _facts(self) -> Constraints:
        return Constraints(
            mass=entries.ranges(self.mass, "constraints.mass"),
            total_mass=self.total_mass,
            at_most=entries.bounds(self.at_most, "constraints.at_most"),
            fixed=self.fixed,
            equal=entries.pairs(self.equal, "constraints.equal"),
            mirrored=entries.mirrors(self.mirrored, "constraints.mirrored"),
        )


@dataclass(frozen=True)
class Configuration:
    """Everything that can be set, by topic."""

    robot: RobotOptions = field(default_factory=RobotOptions)
    topics: BagTopics = field(default_factory=BagTopics)
    prepare: PrepareOptions = field(default_factory=PrepareOptions)
    identify: IdentifyOptions = field(default_factory=IdentifyOptions)
    constraints: ConstraintOptions = field(default_factory=ConstraintOptions)


def load_configuration(path: str | Path) -> Configuration:
    """Configuration of a YAML file: plain, or a ROS parameter file (``/**: ros__parameters: ...``).

    Of a parameter file only the sections of this tree count, as its other keys belong to the nodes.

    Raises
    ------
    ConfigurationError: no such file, not YAML, an unknown key, or a value that does not fit.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such configuration file; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.__class__.__name__}); give a YAML file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise ConfigurationError(f"{path}: is not YAML{line}; correct it") from None
    return configuration_from(content, str(path))


def configuration_from(content: object, where: str) -> Configuration:
    """Configuration of parsed YAML; ``where`` is named in errors.

    Raises
    ------
    ConfigurationError: see :func:`load_configuration`.
    """
    if content is None:
        return Configuration()
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{where}: holds no keys; see 'inertid identify --help' for an example")
    if any(isinstance(block, Mapping) and "ros__parameters" in block for block in content.values()):
        content = _ros_parameters(content, where)
    return build(Configuration, flatten(content), where)


def flatten(tree: Mapping[Any, Any], prefix: str = "") -> dict[str, object]:
    """Nested mappings to dotted keys."""
    flat: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _ros_parameters(content: Mapping[Any, Any], where: str) -> dict[str, object]:
    """Our sections of all blocks, the general ones (with wildcards) first."""
    sections = set(Configuration.__dataclass_fields__)
    merged: dict[str, object] = {}
    for node in sorted(content, key=lambda name: "*" not in str(name)):
        block = content[node]
        parameters = block.get("ros__parameters") if isinstance(block, Mapping) else None
        if not isinstance(parameters, Mapping):
            raise ConfigurationError(f"{where}: {node} has no ros__parameters; nest its keys below ros__parameters")
        flat = flatten(parameters)
        merged |= {key: value for key, value in flat.items() if key.partition(".")[0] in sections}
    return merged
