"""Settings of a command: logging, configuration from arguments, recordings."""

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.schema.structuring import structure
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import ConfigurationError, FormatError
from inertid_ros.core.formats.yaml_text import read_yaml
from inertid_ros.data.files.loading import load_any_length, load_recording
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording
from inertid_ros.robot.recorded_joints import RecordedJoints

_INPUTS = (
    "recordings", "validate", "urdf", "prior", "check", "config", "result", "reference", "input", "recording",
    "directory", "compare", "catalogue",
)  # fmt: skip
T = TypeVar("T", Configuration, ExcitationConfiguration)


def set_up_logging(options: argparse.Namespace) -> None:
    """Show notices of the library as lines on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("inertid: %(message)s"))
    logger = logging.getLogger(__package__.partition(".")[0])
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.ERROR if options.quiet else logging.INFO)


def configuration(options: argparse.Namespace, tree: type[T], given: Mapping[str, object] | None = None) -> T:
    """Configuration of ``--config``, changed by what other options mean, then ``--set``, then ``--lock``."""
    config = load_configuration(options.config, tree) if options.config else tree()
    values = attrs.asdict(config) | dict(given or {})
    for setting in options.set:
        key, _, text = setting.partition("=")
        try:
            values[key] = read_yaml(text)
        except FormatError as error:
            raise ConfigurationError(f"--set {setting}: value {error}; write KEY=VALUE") from None
    for joint, position in named_numbers(options.lock, "--lock").items():
        values[f"robot.locked_joints.{joint}"] = position
    return structure(tree, values, options.config or "command line")


def named_numbers(texts: Sequence[str], name: str) -> dict[str, float]:
    """``JOINT=POSITION`` each, of a command line option.

    Raises
    ------
    ConfigurationError
        A text is not of that form.
    """
    numbers = {}
    for text in texts:
        joint, _, position = (part.strip() for part in text.partition("="))
        try:
            numbers[joint] = float(position)
        except ValueError:
            joint = ""
        if not joint:
            raise ConfigurationError(f"{name}: '{text}' is not JOINT=POSITION; write for example finger_joint1=0.02")
    return numbers


def recordings_of_any_length(
    paths: Sequence[str], config: Configuration, joints: RecordedJoints
) -> list[Recording | LongRecording]:
    """The same as :func:`recordings_from`; what is too long for memory is read in parts."""
    return [load_any_length(path, config.topics, joints, config.prepare.stamps) for path in paths]


def recordings_from(paths: Sequence[str], config: Configuration, joints: RecordedJoints) -> list[Recording]:
    """Recordings in the order of their paths; ``joints`` are those of the robot."""
    return [load_recording(path, config.topics, joints, config.prepare.stamps) for path in paths]


def inputs(options: argparse.Namespace) -> Iterator[str]:
    """Paths that a command reads, as its arguments name them."""
    for name in _INPUTS:
        value = getattr(options, name, None)
        yield from ([value] if isinstance(value, str) else value or ())
