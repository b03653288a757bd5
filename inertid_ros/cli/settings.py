"""Settings of a command: logging, configuration from arguments, recordings."""

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration, check_configuration
from inertid_ros.config.option_fields import is_section, options as options_of
from inertid_ros.config.structuring import flat, flow, structure
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats import read_yaml
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording
from inertid_ros.report.results import REPORT, Result, as_written
from inertid_ros.robot.recorded_joints import RecordedJoints

_INPUTS = ("recordings", "validate", "urdf", "prior", "check", "config", "result", "reference", "input", "recording",
    "directory", "compare", "catalogue", "motion", "onto")
_USED_SECTIONS = {"convert": ("topics", "prepare.stamps"), "info": ("robot", "topics", "prepare.stamps"),
    "force-sensor": ("robot", "topics", "prepare.stamps"), "perturb": ("robot",),
    "validate": ("robot", "topics", "prepare", "identify.equations"), "payload": ("robot", "topics", "prepare")}
"""Sections of the configuration that a command uses, for commands that do not use all sections."""
_BAG_SECTIONS = ("topics", "prepare.stamps")
_SUFFIXES_WITH_FIXED_CHANNELS = (".npz", ".csv", ".tsv", ".txt", ".urdf")
_SETTERS = {"identify.equations": "--model", "robot.base": "--model", "identify.prior": "--prior"}
T = TypeVar("T", Configuration, ExcitationConfiguration)


def set_up_logging(options: argparse.Namespace) -> None:
    """Print notices of the library as lines on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("inertid: %(message)s"))
    logger = logging.getLogger(__package__.partition(".")[0])
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.ERROR if options.quiet else logging.INFO)


def configuration(options: argparse.Namespace, tree: type[T], implied: Mapping[str, object] | None = None) -> T:
    """Return the configuration of ``--config``, changed by ``implied`` settings, ``--set`` and ``--lock``.

    ``implied`` are settings that follow from other options. Raises ConfigurationError if an option is unknown, invalid
    or without effect, or if two options contradict each other.
    """
    config = load_configuration(options.config, tree) if options.config else tree()
    values = attrs.asdict(config)
    settings: dict[str, tuple[str, object]] = {}  # by key: option of the command line that sets the key, and value

    def set_value(option: str, key: str, value: object) -> None:
        for single, given in ((key, value), *flat({key: value})):
            before, last = settings.setdefault(single, (option, given))
            if last is not given and last != given:  # NaN is not equal to itself
                raise ConfigurationError(f"{before} and {option} contradict each other; give one of them")
        _check_use(key, option, options)
        values[key] = value

    for key, value in (implied or {}).items():
        words: str | list[str] = getattr(options, _SETTERS[key].strip("-"))
        set_value(" ".join([_SETTERS[key], *([words] if isinstance(words, str) else words)]), key, value)
    for setting in options.set:
        key, _, text = setting.partition("=")
        try:
            value = read_yaml(text)
        except FormatError as error:
            raise ConfigurationError(f"--set {setting}: the value {error}; give YAML, as in '{key}=[1, 2]'") from None
        for inner, single in _leaf_settings(tree, key, value):
            set_value(f"--set {setting}", inner, single)
    for joint, position in named_numbers(options.lock, "--lock").items():
        set_value(f"--lock {joint}={position:g}", f"robot.locked_joints.{joint}", position)
    where = options.config or "command line"
    config = structure(tree, values, where)
    if "prepare" in _USED_SECTIONS.get(options.command, ("prepare",)):  # the others use single keys of their own
        check_configuration(config, where)
    return config


def _check_use(key: str, option: str, options: argparse.Namespace) -> None:
    """Refuse a command line setting that has no effect on this command or on these recordings."""
    if not _is_below(key, _USED_SECTIONS.get(options.command, ("",))):
        raise ConfigurationError(f"{option}: `inertid {options.command}` does not use {key}; leave it out")
    names = ("recordings", "validate", "reference", "input", "subject")
    paths = [Path(path) for path in inputs(options, names)]
    fixed = [path.suffix in _SUFFIXES_WITH_FIXED_CHANNELS or (path / REPORT).exists() for path in paths]
    if paths and _is_below(key, _BAG_SECTIONS) and all(fixed):
        raise ConfigurationError(
            f"{option}: has no effect on .npz files and tables, whose channel names are fixed; leave it out")


def _is_below(key: str, sections: Sequence[str]) -> bool:
    return any(not section or f"{key}.".startswith(f"{section}.") for section in sections)


def _leaf_settings(tree: type, key: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield keys and values that a setting sets; a mapping for a section sets only the keys in the mapping."""
    field: Any = None
    for part in key.split("."):
        field = getattr(attrs.fields(attrs.resolve_types(tree)), part, None)
        if field is None or not is_section(field):
            yield key, value
            return
        tree = field.type
    if not isinstance(value, Mapping):
        yield key, value
        return
    for name, inner in value.items():
        yield from ((f"{key}.{below}", single) for below, single in _leaf_settings(tree, str(name), inner))


def check_same_robot(config: Configuration, result: Result) -> None:
    """Refuse robot options and equations that differ from the options stored in a result."""
    with as_written(result.directory / REPORT):
        stored = result.report["provenance"].get("configuration") or {}
        sections = {"robot": {**stored.get("robot", {}), "loads": {}}, "identify": stored.get("identify", {})}
        former = dict(flat(sections))
    defaults = {entry.key: entry.default for entry in options_of(Configuration)}
    for key, value in flat(json.loads(json.dumps(attrs.asdict(config)))):
        if not key.startswith("robot.") and key != "identify.equations":
            continue
        default = defaults.get(key)
        if key.startswith("robot.loads.") or value == (list(default) if isinstance(default, tuple) else default):
            continue
        if former and former.get(key) != value:
            raise ConfigurationError(
                f"{key} is {flow(value)}, but {result.directory} was identified with"
                f" {flow(former[key]) if key in former else 'no value'}; the robot of a result cannot be changed: omit"
                f" {key}")


def rejection(result: Result) -> list[str]:
    """Return the warning that a result must not be used, if it must not."""
    return ["the verdict on this result is 'do not use'"] if result.rejected else []


def named_numbers(texts: Sequence[str], name: str) -> dict[str, float]:
    """Parse texts ``JOINT=POSITION`` of an option; raise ConfigurationError if invalid or if two texts contradict."""
    numbers: dict[str, tuple[str, float]] = {}
    for text in texts:
        joint, _, position = (part.strip() for part in text.partition("="))
        try:
            value = float(position)
        except ValueError:
            joint = ""
        if not joint:
            raise ConfigurationError(f"{name}: '{text}' is not JOINT=POSITION; write for example finger_joint1=0.02")
        before, last = numbers.setdefault(joint, (text, value))
        if last != value:
            raise ConfigurationError(f"{name} {before} and {name} {text} contradict each other; give one of them")
    return {joint: value for joint, (_, value) in numbers.items()}


def recordings_of_any_length(paths: Sequence[str], config: Configuration,
        joints: RecordedJoints) -> list[Recording | LongRecording]:
    """Recordings in the order of their paths; a recording too long for memory is read in parts."""
    return [load_any_length(path, config.topics, joints, config.prepare.stamps) for path in paths]


def inputs(options: argparse.Namespace, names: Sequence[str] = _INPUTS) -> Iterator[str]:
    """Paths of input files in the arguments of a command."""
    for name in names:
        value = getattr(options, name, None)
        yield from ([value] if isinstance(value, str) else value or ())
