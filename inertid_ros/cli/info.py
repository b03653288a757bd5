"""``inertid info``: content of a recording, a URDF, a result directory or a plan."""

import argparse
from pathlib import Path
from typing import Any

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import ConfigurationError, RecordingError
from inertid_ros.core.formats import foreign_content, read_head
from inertid_ros.core.inertial_parameters import mass_com_inertia, min_eigenvalue
from inertid_ros.data.files.bag_opening import bag_topics
from inertid_ros.data.files.loading import is_bag, load_any_length
from inertid_ros.data.long_recording import all_parts
from inertid_ros.data.screening.recording_health import recording_content
from inertid_ros.excitation.plan import load_motion
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.report.report_content import records
from inertid_ros.report.results import REPORT, Result, as_written
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.recorded_joints import RecordedJoints

from .printing import Columns, deliver, number, print_records, print_report
from .settings import configuration

_GIVEN_LINK_COLUMNS: Columns = (
    ("link", "name"),
    ("mass [kg]", "mass"),
    ("com [m]", lambda link: " ".join(number(value, 3) for value in link["com"])),
    ("smallest eigenvalue", lambda link: number(link["min_pseudo_inertia_eigenvalue"], 3)))
_JOINT_COLUMNS: Columns = (
    ("joint", "name"), ("position from", "lowest"), ("to", "highest"), ("RMS effort", "rms_effort"))
_LIMIT_COLUMNS: Columns = (("joint", "name"),
    *((key, key) for key in ("lower", "upper", "velocity", "effort", "viscous", "coulomb")))
_MOTION_COLUMNS: Columns = (
    ("joint", "name"), ("position from", "lowest"), ("to", "highest"), ("peak speed", "peak_speed"))
_PLAN = "plan.yaml"
_TOPIC_COLUMNS: Columns = (("topic", "name"), ("type", "type"), ("messages", "messages"))


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    config = configuration(options, Configuration)
    path = Path(options.subject)
    if (path / _PLAN).exists() or path.suffix in (".yaml", ".yml"):
        return _describe_plan(path / _PLAN if path.is_dir() else path, options)
    if path.is_dir() and (path / REPORT).exists():
        report = Result.load(path).report
        with as_written(path / REPORT):
            return deliver(options, {"kind": "result", **report}, lambda: print_report(report))
    if _is_text(path):
        return _describe_model(load_model(path, config.robot), options)
    return _describe_recording(path, config, options)


def _is_text(path: Path) -> bool:
    """True if a file looks like XML rather than like a recording."""
    if path.is_dir() or not path.exists():
        return False
    head = read_head(path)
    is_xml = not foreign_content(head) and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    return is_xml or path.suffix in (".urdf", ".xml", ".xacro")


def _describe_plan(path: Path, options: argparse.Namespace) -> int:
    if options.config or options.set or options.lock:
        raise ConfigurationError("--config, --set and --lock have no effect on a plan; leave them out")
    plan = load_motion(path)
    joints = records({"name": plan.joint_names, "lowest": plan.position.min(axis=0),
        "highest": plan.position.max(axis=0), "peak_speed": abs(plan.velocity).max(axis=0)})
    title = f"{plan.motion_type} motion of {number(plan.duration)} s, {len(plan.time)} points [rad or m, 1/s]"
    content = {"kind": "plan", "motion_type": plan.motion_type, "duration": plan.duration, "joints": joints}
    return deliver(options, content, lambda: print_records(title, _MOTION_COLUMNS, joints))


def _describe_model(model: RobotModel, options: argparse.Namespace) -> int:
    mass, com, _ = mass_com_inertia(model.body_prior)
    limits, recorded = model.limits, model.recorded_joints.recorded(model.joint_names)
    bounds = {key: getattr(limits, key) for key in ("lower", "upper", "velocity", "effort")}
    joints = records({"name": model.joint_names, "recorded_as": recorded, **bounds, **model.drive_prior})
    eigenvalues = min_eigenvalue(model.body_prior)
    links = records({"name": model.link_names, "mass": mass, "com": com, "min_pseudo_inertia_eigenvalue": eigenvalues})
    count = base_parameters_of_robot(model).count

    def show() -> None:
        print(f"robot {model.name}, {model.joints} joints, {count} base parameters, model hash {model.hash}")
        print_records("Joints", _LIMIT_COLUMNS, joints)
        if mapping := model.recorded_joints.translations(recorded):
            print(f"names in recordings: {mapping}")
        print_records("Links, with the bodies fixed to them", _GIVEN_LINK_COLUMNS, links)

    about = {"robot": model.name, "model_hash": model.hash, "base_parameters": count}
    return deliver(options, {"kind": "urdf", **about, "joints": joints, "links": links}, show)


def _describe_recording(path: Path, config: Configuration, options: argparse.Namespace) -> int:
    topics = bag_topics(path) if is_bag(path) else {}
    problem, content = "", dict[str, Any]()
    try:
        joints = RecordedJoints(names=config.robot.joint_names)
        recording = load_any_length(path, config.topics, joints, config.prepare.stamps)
        content = recording_content(all_parts(recording))
    except RecordingError as error:
        if not topics:
            raise
        problem = str(error)  # the topics of a bag without usable joint states are shown too
    listed = [{"name": name, "type": message, "messages": count} for name, (message, count) in sorted(topics.items())]

    def show() -> None:
        if listed:
            print_records(f"Topics of {path}", _TOPIC_COLUMNS, listed)
        if problem:
            print(problem)
            return
        print(f"{content['samples']} samples in {number(content['seconds'])} s, {number(content['rate_hz'])} Hz, steps"
            f" {number(content['shortest_step_s'])} to {number(content['longest_step_s'])} s, {content['gaps']} gaps;"
            f" channels: {', '.join(content['channels'])}")
        for notice in content["notices"]:
            print(notice)
        if content["joints"]:
            print_records("Joints", _JOINT_COLUMNS, content["joints"])

    return deliver(options, {"kind": "recording", **content, "topics": listed, "problem": problem or None}, show)
