"""``inertid init``: inspect a robot description, and write a configuration for its calibration."""

import argparse
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from inertid_ros.calibration.robot_setup import COMMANDS, RobotSetup, Setting, robot_setup
from inertid_ros.cli.printing import deliver
from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.errors import InertidError, ModelError, one_line
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.data.files.bag_opening import bag_topics
from inertid_ros.data.files.loading import is_bag, load_recording
from inertid_ros.data.messages import CONTROLLER_STATE, JOINT_STATE
from inertid_ros.robot.urdf.parsing import XACRO_SUFFIX, expand_xacro

from .settings import inputs, named_numbers

_LINE_WIDTH, _INDENT = 110, "  "


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    description = Path(options.urdf)
    if description.suffix == XACRO_SUFFIX and options.xacro is None:
        raise ModelError(
            f"{description}: is xacro, which evaluates expressions of the file; if you trust it, expand it with --xacro"
        )
    target = Path(options.output or f"{re.sub(r'[^A-Za-z0-9_-]', '_', description.name.partition('.')[0])}.yaml")
    for path in (target,) if options.xacro is None else (target, target.with_suffix(".urdf")):
        check_file(path, options.force, inputs(options))
    commanded = options.effort == COMMANDS
    recorded, settings = _recorded(Path(options.recording), commanded) if options.recording else ((), ())
    locked = named_numbers(options.lock, "--lock")
    replaced = target.with_suffix(".urdf").exists()
    urdf = description if options.xacro is None else _expanded(description, options, target)
    try:
        setup = robot_setup(urdf, options.effort, options.mounting, locked, recorded)
    except InertidError:
        if options.xacro is not None and not replaced:
            urdf.unlink()
        raise
    setup = replace(setup, settings=(*setup.settings, *settings))
    write_file(target, _yaml(setup, urdf, target).encode(), options.force)
    content = {"robot": setup.model.name, "urdf": str(urdf), "configuration": str(target),
        "joints": setup.model.joint_names, "settings": setup.settings, "notes": setup.notes,
        "controller": setup.driver.controller if setup.driver else ""}
    lines = [f"robot {setup.model.name}, {setup.model.joints} joints: {', '.join(setup.model.joint_names)}",
        *_settings_lines(setup.settings), *(f"check: {note}" for note in setup.notes)]
    return deliver(options, content, lambda: print("\n".join(lines)), f"{target}; next: {_next(urdf, target)}")


def _recorded(path: Path, commanded: bool) -> tuple[tuple[str, ...], tuple[Setting, ...]]:
    """Joint names of a recording, and its topics of joint states and of commands if they are the only ones."""
    default = RecordingTopics().joint_states
    topics = bag_topics(path) if is_bag(path) else {}
    published = [topic for topic, (message_type, _) in topics.items() if message_type == JOINT_STATE]
    topic = published[0] if len(published) == 1 else default
    states = [name for name, (message_type, _) in topics.items() if message_type == CONTROLLER_STATE]
    state = states[0] if commanded and len(states) == 1 else ""
    names = load_recording(path, RecordingTopics(joint_states=topic, controller_state=state)).joint_names
    found = (Setting("topics.joint_states", topic, f"the only joint states in {path.name}"),
        Setting("topics.controller_state", state, f"the only controller in {path.name}"))
    return names, tuple(setting for setting in found if setting.value not in ("", default))


def _expanded(path: Path, options: argparse.Namespace, target: Path) -> Path:
    """Expand xacro to a URDF next to the configuration."""
    arguments = {}
    for text in options.xacro:
        name, separator, value = text.partition(":=")
        if not (name and separator):
            raise ModelError(f"--xacro: '{text}' is not NAME:=VALUE; write for example ur_type:=ur5e")
        arguments[name] = value
    urdf = target.with_suffix(".urdf")
    write_file(urdf, expand_xacro(path, arguments).encode(), options.force)
    return urdf


def _yaml(setup: RobotSetup, urdf: Path, target: Path) -> str:
    """Parameter file for the command line and for launch files."""
    controller = f" controller:={setup.driver.controller}" if setup.driver and setup.driver.controller else ""
    lines = [one_line(line) for line in (
        f"# Calibration of {setup.model.name}, with settings derived from {urdf.name}. Correct wrong settings.",
        f"#   {_next(urdf, target)}",
        f"#   inertid identify --urdf {urdf} --config {target} --output result RECORDING",
        f"#   ros2 launch inertid_ros calibrate.launch.py urdf:={urdf} config:={target}{controller} \\",
        "#     plan:=motion/plan.yaml validation_plan:=motion/validation_plan.yaml", "#", "# Check:")]
    wrap = textwrap.TextWrapper(_LINE_WIDTH, initial_indent="#   * ", subsequent_indent="#     ",
        break_long_words=False, break_on_hyphens=False)
    lines += [line for note in setup.notes for line in wrap.wrap(note)]
    lines += ["", "/**:", "  ros__parameters:", *_entries(setup.settings)]
    return "\n".join(lines) + "\n"


def _entries(settings: Iterable[Setting]) -> Iterator[str]:
    """Lines of YAML with reasons; settings are grouped by section."""
    written: tuple[str, ...] = ()
    for setting in settings:
        *sections, name = setting.key.split(".")
        values = {name: setting.value}
        if isinstance(setting.value, Mapping):
            sections, values = [*sections, name], dict(setting.value)
        for depth, section in enumerate(sections, start=1):
            if written[:depth] != tuple(sections[:depth]):
                yield f"{_INDENT * (depth + 1)}{section}:"
        written = tuple(sections)
        for key, value in values.items():
            yield f"{_INDENT * (len(sections) + 2)}{_scalar(key)}: {_scalar(value)}  # {setting.reason}"


def _scalar(value: object) -> str:
    value = float(f"{value:.6g}") if isinstance(value, float) else value
    return str(yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).partition("\n")[0])


def _settings_lines(settings: Iterable[Setting]) -> Iterator[str]:
    """One line for each key and reason."""
    for (key, reason), same in itertools.groupby(settings, lambda setting: (setting.key, setting.reason)):
        values = [setting.value for setting in same]
        maps = [value for value in values if isinstance(value, Mapping)]
        pairs = [f"{name}: {_scalar(value)}" for mapping in maps for name, value in mapping.items()]
        yield f"{key}: {', '.join(pairs) if maps else values[0]}  ({reason})"


def _next(urdf: Path, target: Path) -> str:
    return f"inertid excite --urdf {urdf} --config {target} --output motion"
