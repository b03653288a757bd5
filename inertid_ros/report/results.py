"""The result directory: parameters.yaml, calibrated.urdf, report.json, report.html, information.npz, curves.npz."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import yaml

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.structuring import structure
from inertid_ros.core import formats
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConfigurationError, FormatError, IdentificationError, InertidError
from inertid_ros.core.outputs import check_directory, write_directory
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.torque_confidence import ParameterSet, compare_results
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.information.information_file import information_bytes, read_information
from inertid_ros.identification.outcome import CALIBRATED_URDF, IdentificationOutcome
from inertid_ros.report.drawing import Drawing
from inertid_ros.report.pages import plots, render_page, rendered
from inertid_ros.report.report_content import REPORT_FORMAT, Curves, json_text, plain, report_content, section_of_errors
from inertid_ros.robot.body_changes import matches
from inertid_ros.robot.model import GIVEN_URDF, RobotModel, load_model

RESULT = "result"  # kind of output
PARAMETERS, REPORT, PAGE = "parameters.yaml", "report.json", "report.html"
INFORMATION, CURVES = "information.npz", "curves.npz"
_COMPARED_PARAMETERS = 20  # parameters in the comparison page
_MAX_FILE_BYTES = 2**30  # largest file of a result
_VECTORS = ("parameters", "prior", "covariance")
_LINK_KEYS = ("name", "mass", "com", "inertia", "parameters", "standard_deviation")
_ROBOT_KEYS = (
    "locked_joints", "carried_joints", "drive_terms", "gravity", "base", "stribeck_speeds", "rotor_inertias",
    "effort", "effort_scale", "joint_names", "markers", "command_kp", "command_kd", "command_gain_factors",
    "command_limits", "command_delay_s")
_TERM_KEYS = ("joint", "expressions", "non_negative", "values", "always")
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
SCHEMAS = {"report.json": "report.schema.json", "parameters.yaml": "parameters.schema.json",
    "plan.yaml": "plan.schema.json"}
"""Name of each written file, mapped to the name of its schema."""


class ResultError(InertidError):
    """A result directory cannot be read."""


@dataclass(frozen=True, repr=False)
class Result:
    """Content of a result directory.

    Attributes
    ----------
    model : robot of ``calibrated.urdf`` with stored options; ``model.prior`` is from that file, not the original URDF.
    parameters, prior : ``(p,)`` in the order of ``model.layout``; ``model.prior_name`` describes ``prior``.
    covariance : ``(p, p)``, covariance of the parameters.
    report : content of ``report.json``.
    """

    directory: Path
    model: RobotModel
    parameters: Array
    prior: Array
    covariance: Array
    report: Mapping[str, Any]

    @classmethod
    def load(cls, directory: str | Path) -> "Result":
        """Read a result directory; ResultError if a file is missing, damaged or has another format."""
        path = Path(directory)
        if not os.path.isdir(path):  # Path.is_dir raises an error if the name is too long
            raise ResultError(f"{path}: no such result directory; check the path")
        content = _parse(path / PARAMETERS, formats.read_yaml)
        report = _parse(path / REPORT, formats.read_json)
        version = content.get("format")
        if version != REPORT_FORMAT:
            raise ResultError(f"{path / PARAMETERS}: format is {version}, expected {REPORT_FORMAT}; identify again")
        with as_written(path / PARAMETERS):
            parameters, prior, covariance = (np.array(content[key], dtype=float) for key in _VECTORS)
            model = _load_robot(path / CALIBRATED_URDF, content["robot"])
            model_hash = content["robot"]["model_hash"]
            model = replace(model, prior_name=str(content.get("prior_name", GIVEN_URDF)))
        size = model.layout.size
        shapes = (parameters.shape, prior.shape, covariance.shape)
        if shapes != ((size,), (size,), (size, size)) or model.hash != model_hash:
            raise ResultError(f"{path / PARAMETERS}: does not match {CALIBRATED_URDF} in its folder; identify again")
        if not all(np.isfinite(values).all() for values in (parameters, prior, covariance)):
            raise ResultError(f"{path / PARAMETERS}: is damaged (holds NaN or infinite numbers); identify again")
        return cls(path, model, parameters, prior, covariance, report)

    @cached_property
    def information(self) -> Information:
        """Information of the recordings, for a later fit with new recordings; ResultError if the file is unusable."""
        try:
            return read_information(self.directory / INFORMATION)
        except IdentificationError as error:
            raise ResultError(f"{error}; identify again") from None

    @property
    def rejected(self) -> bool:
        return self.report.get("status") == "rejected"

    @property
    def equation_type(self) -> str:
        """Type of the equations that were fitted, see :data:`inertid_ros.config.identification.EQUATION_TYPES`."""
        with as_written(self.directory / REPORT):
            return str(self._stored("identify").get("equations", "force"))

    @property
    def cutoff_hz(self) -> float:
        """Cutoff of the recordings [Hz]; 0 if unknown."""
        with as_written(self.directory / REPORT):
            return float(self.report["provenance"].get("cutoff_hz") or 0.0)

    @property
    def effort_delay_s(self) -> float:
        """Removed delay of effort [s]."""
        with as_written(self.directory / REPORT):
            return float(self.report.get("effort_delay_s") or 0.0)

    @property
    def fitted_recordings(self) -> dict[str, str]:
        """Names of the fitted recordings, by their SHA-256."""
        with as_written(self.directory / REPORT):
            sources = self.report["provenance"]["recordings"]
            return {source["sha256"]: str(source["name"]) for source in sources if source["role"] == "train"}

    @property
    def known_recordings(self) -> dict[str, str]:
        """Names of the fitted recordings, and of the recordings of results that were continued or gave the prior."""
        with as_written(self.directory / REPORT):
            provenance = self.report["provenance"]
            sources = [*filter(None, [provenance.get("earlier")]), *provenance.get("prior", ())]
            earlier = {checksum: str(name) for source in sources for checksum, name in source["recordings"].items()}
        return {**earlier, **self.fitted_recordings}

    @property
    def fitted_without_load(self) -> list[str]:
        """Names of the fitted recordings in which the robot carried no known load (``robot.loads``)."""
        with as_written(self.directory / REPORT):
            loads = self._stored("robot").get("loads", {}).values()
            patterns = [pattern for load in loads for pattern in load["recordings"]]
        return [name for name in self.fitted_recordings.values() if not matches(name, patterns)]

    def load_recording(self, path: str | Path) -> Recording:
        """Load another recording of this robot, with the topics and stamps of the fitted recordings.

        Raises RecordingError: see :func:`.loading.load_recording`.
        """
        with as_written(self.directory / REPORT):
            topics = structure(RecordingTopics, self._stored("topics"), REPORT, "topics.")
            stamps = str(self._stored("prepare").get("stamps", "header"))
        return load_recording(path, topics, self.model.recorded_joints, stamps)

    def _stored(self, section: str) -> Mapping[str, Any]:
        """A section of the configuration of the fit; empty if it was not stored."""
        sections = self.report["provenance"].get("configuration") or {}
        return dict(sections.get(section, {}))

    @property
    def page(self) -> str:
        """HTML of the report, with plots if the directory contains their curves."""
        return render_page(self.report, Curves.read(self.directory / CURVES))

    def plot(self) -> Drawing:
        """SVG plots of measured and predicted torque, and of friction."""
        return plots(self.report, Curves.read(self.directory / CURVES))

    def save(self, directory: str | Path, force: bool = False) -> Path:
        """Write a copy of the files; see :meth:`CalibrationOutcome.save`."""
        names = (file for file in self.directory.iterdir() if not file.name.startswith("."))
        files = {file.name: formats.read_bytes(file, _MAX_FILE_BYTES) for file in names}
        write_directory(Path(directory), RESULT, files, force or None)
        return Path(directory)

    def __repr__(self) -> str:
        return f"Result({str(self.directory)!r}: {self.report.get('message')})"

    def _repr_html_(self) -> str:
        return rendered("summary.html.j2", report=self.report)


class CalibrationOutcome(IdentificationOutcome):
    """Identification outcome that can be saved as a result directory."""

    @cached_property
    def report(self) -> dict[str, Any]:
        """Content of ``report.json``."""
        return report_content(self)

    def save(self, directory: str | Path, force: bool = False) -> Path:
        """Write a result directory, complete or not at all; ``force`` replaces an earlier result.

        Raises OutputError: the directory cannot be written, exists without ``force``, or is not a result directory;
        partial output is removed.
        """
        target = Path(directory)
        check_directory(target, RESULT, force or None)
        curves = Curves.from_outcome(self)
        files = {PARAMETERS: _dump(_parameters_content(self)).encode(), CALIBRATED_URDF: self.urdf.encode(),
            REPORT: json_text(self.report).encode(), PAGE: render_page(self.report, curves).encode(),
            INFORMATION: information_bytes(self.estimate.information), CURVES: curves.to_bytes()}
        write_directory(target, RESULT, files, force or None)
        return target

    def plot(self) -> Drawing:
        """SVG plots of measured and predicted torque, and of friction."""
        return plots(self.report, Curves.from_outcome(self))

    def __repr__(self) -> str:
        return f"CalibrationOutcome({self.estimate.model.name}: {self.message})"

    def _repr_html_(self) -> str:
        return rendered("summary.html.j2", report=self.report)


@contextmanager
def as_written(file: Path) -> Iterator[None]:
    """Raise ResultError for errors that damaged content causes; pass on other package errors, OSError, MemoryError."""
    try:
        yield
    except (InertidError, OSError, MemoryError) as error:
        if not isinstance(error, ConfigurationError):
            raise
        raise ResultError(f"{file}: is damaged ({error}); identify again") from None
    except Exception as error:
        raise ResultError(f"{file}: is damaged ({error!r}); identify again") from None


def _parameters_content(outcome: CalibrationOutcome) -> dict[str, Any]:
    """Content of ``parameters.yaml``: the data needed to use the result, and its provenance."""
    estimate, report = outcome.estimate, outcome.report
    return {"format": REPORT_FORMAT, "robot": plain(_robot_content(estimate.model)),
        **{key: report[key] for key in ("status", "message", "verdict")},
        "reasons": [reason["message"] for reason in report["reasons"]],
        "links": [{key: link[key] for key in _LINK_KEYS} for link in report["links"]], "joints": report["joints"],
        "rotors": report["rotors"], "parameter_names": list(estimate.layout.names),
        "parameters": estimate.parameters.tolist(), "prior": estimate.prior.tolist(),
        "prior_name": estimate.model.prior_name,
        "covariance": [[float(f"{value:.9g}") for value in row] for row in estimate.covariance],
        "provenance": report["provenance"]}


def comparison_content(first: Result, second: Result) -> dict[str, Any]:
    """Differences of two results as plain data; ResultError if the results belong to different robots."""
    if first.model.hash != second.model.hash or first.model.link_names != second.model.link_names:
        raise ResultError(
            f"{second.directory}: belongs to another robot than {first.directory} (their kinematics differ); compare"
            " two results of one robot")
    sets = [ParameterSet(result.model, result.parameters, result.covariance) for result in (first, second)]
    distances, torque_difference, changes = compare_results(*sets)
    outlines = [_outline(result) for result in (first, second)]
    pairs = zip(first.model.link_names, first.report["links"], second.report["links"], distances, strict=True)
    links = [{"name": name, "mass": [a["mass"], b["mass"]], "com": [a["com"], b["com"]], "distance": distance}
        for name, a, b, distance in pairs]
    return plain({"robot": first.model.name, "results": outlines,
        "same_data": _data_of_errors(first) == _data_of_errors(second),
        "links": links, "torque_difference": torque_difference, "parameters": changes})


def render_comparison(content: Mapping[str, Any]) -> str:
    """HTML page from the data of :func:`comparison_content`."""
    return rendered("comparison.html.j2", comparison=content, shown=_COMPARED_PARAMETERS)


def schema_of(file: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file; ``file`` is a key of :data:`SCHEMAS`."""
    text = (resources.files(__package__) / "schemas" / SCHEMAS[file]).read_text(encoding="utf-8")
    return json.loads(text)


def _robot_content(model: RobotModel) -> dict[str, Any]:
    """Options of a robot, and the properties of its layout that the recordings determined."""
    layout, options = model.layout, model.options
    wheels = [{"name": name, **attrs.asdict(wheel), "inertia": wheel.inertia or None}
        for name, wheel in options.wheels.items()]
    terms = [{"name": term.name, **{key: getattr(term, key) for key in _TERM_KEYS}}
        for term in layout.terms if not term.labels]
    posed = [{"name": name, "position": drive.position} for name, drive in options.couplings.items() if drive.position]
    return {"name": model.name, "model_hash": model.hash, **{key: getattr(options, key) for key in _ROBOT_KEYS},
        "drive_terms": layout.drive_terms, "couplings": [*layout.couplings, *posed], "rotors": layout.rotors,
        "contacts": model.contacts, "wheels": wheels, "terms": terms,
        "markers": {name: attrs.asdict(marker) for name, marker in options.markers.items()},
        "stribeck_speeds": dict(zip(layout.joints, layout.stribeck_speeds, strict=False)),
        "without_stribeck": layout.without_stribeck,
        "transition_speeds": dict(zip(layout.joints, layout.transition_speeds, strict=False))}


def _load_robot(urdf: Path, robot: Mapping[str, Any]) -> RobotModel:
    """Load the robot of a result with its options in ``parameters.yaml``; missing options keep their defaults."""
    options = {key: value for key, value in robot.items() if key in _ROBOT_KEYS}
    for key in ("couplings", "rotors", "contacts", "wheels", "terms"):
        # Optional values that were not given, such as an inertia from the URDF, are stored as null.
        elements = [{name: x for name, x in element.items() if x is not None} for element in robot.get(key, ())]
        options[key] = {str(element.pop("name")): element for element in elements}
    options["plates"] = {}
    for name, contact in list(options["contacts"].items()):
        if plate := contact.pop("plate", None):
            measures = "pressure" if plate.pop("partial") else "wrench"
            options["plates"][name] = {**options["contacts"].pop(name), **plate, "measures": measures}
    model = load_model(urdf, structure(RobotOptions, options, PARAMETERS, "robot."))
    speeds = robot.get("transition_speeds", {})
    layout = replace(model.layout, without_stribeck=tuple(robot.get("without_stribeck", ())),
        transition_speeds=tuple(float(speeds[joint]) for joint in model.joint_names if speeds))
    return replace(model, layout=layout)


def _dump(content: dict[str, Any]) -> str:
    text: str = yaml.dump(content, Dumper=_DUMPER, sort_keys=False, default_flow_style=None, width=10_000)
    return "# Inertial parameters about the joint frame origins, SI: m, m c (x y z), I (xx xy yy xz yz zz).\n" + text


def _parse(path: Path, parser: Callable[[str], Any]) -> dict[str, Any]:
    try:
        content = parser(formats.read_text(path))
    except FileNotFoundError:
        raise ResultError(f"{path.parent}: has no {path.name} and is not a result directory; check the path") from None
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except FormatError as error:
        raise ResultError(f"{path}: is damaged ({error}); identify again") from None
    if not isinstance(content, dict):
        raise ResultError(f"{path}: is damaged; identify again")
    return content


def _data_of_errors(result: Result) -> tuple[str, list[str], float]:
    """Section of the errors, checksums of its recordings, and their cutoff; errors of equal data can be compared."""
    section, provenance = section_of_errors(result.report), result.report["provenance"]
    role = "validation" if section == "validation" else "train"
    checksums = sorted(source["sha256"] for source in provenance["recordings"] if source["role"] == role)
    return section, checksums, result.cutoff_hz


def _outline(result: Result) -> dict[str, Any]:
    report, section = result.report, section_of_errors(result.report)
    errors = report[section]
    return {"directory": str(result.directory), "verdict": report["verdict"],
        "created": report["provenance"]["created"], "errors_on": section, "channels": report["channels"],
        **{key: errors[key] for key in ("relative_error", "rms_error", "recordings")}}
