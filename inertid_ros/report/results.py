"""The result directory: parameters.yaml, calibrated.urdf, report.json, report.html, information.npz, curves.npz."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import FormatError, IdentificationError, InertidError
from inertid_ros.core.formats import read_json, read_yaml
from inertid_ros.core.outputs import check_directory, write_directory
from inertid_ros.identification.assessment.torque_confidence import ParameterSet, compare_results
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.information.information_file import information_bytes, read_information
from inertid_ros.identification.outcome import CALIBRATED_URDF, IdentificationOutcome
from inertid_ros.report.pages import render_page, render_summary, rendered
from inertid_ros.report.report_content import REPORT_FORMAT, Curves, plain, read_curves, report_content
from inertid_ros.robot.contacts import Contact, Plate
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import ModelOptions, RobotModel, load_model
from inertid_ros.robot.rotors import Rotor, Wheel

RESULT = "result"  # kind of output
PARAMETERS, REPORT, PAGE = "parameters.yaml", "report.json", "report.html"
INFORMATION, CURVES = "information.npz", "curves.npz"
_COMPARED_PARAMETERS = 20  # on a page
_VECTORS = ("parameters", "prior", "covariance")
_LINK_KEYS = ("name", "mass", "com", "inertia", "parameters", "standard_deviation")
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
SCHEMAS = {
    "report.json": "report.schema.json",
    "parameters.yaml": "parameters.schema.json",
    "plan.yaml": "plan.schema.json",
}
"""Written file to the name of its schema."""


class ResultError(InertidError):
    """A result directory cannot be read."""


@dataclass(frozen=True)
class StoredResult:
    """A result directory, read back.

    Attributes
    ----------
    model : RobotModel
        From ``calibrated.urdf``, with the same locked joints; its ``prior`` is not that of the original URDF.
    parameters : ndarray, shape (p,)
        Parameters in the order of ``model.layout``.
    prior : ndarray, shape (p,)
        Parameters of the given URDF.
    covariance : ndarray, shape (p, p)
        Covariance of the parameters.
    report : mapping
        Content of ``report.json``.
    """

    directory: Path
    model: RobotModel
    parameters: Array
    prior: Array
    covariance: Array
    report: Mapping[str, Any]

    @cached_property
    def information(self) -> Information:
        """Information of the recordings, to which later ones can be added.

        Raises
        ------
        ResultError
            There is none, or it is damaged.
        """
        try:
            return read_information(self.directory / INFORMATION)
        except IdentificationError as error:
            raise ResultError(f"{error}; results of this version hold it, so identify again") from None

    @property
    def page(self) -> str:
        """HTML of the report, with plots if the directory holds their curves."""
        return render_page(self.report, read_curves(self.directory / CURVES))

    def _repr_html_(self) -> str:
        return render_summary(self.report)


def write_result(outcome: IdentificationOutcome, directory: str | Path, overwrite: bool = False) -> Path:
    """Write a result directory, which appears complete or not at all.

    Raises
    ------
    OutputError
        It cannot be written, exists without ``overwrite``, or is no result directory; nothing is left behind.
    """
    target = Path(directory)
    check_directory(target, RESULT, overwrite or None)
    report, curves = report_content(outcome), Curves.from_outcome(outcome)
    files = {
        PARAMETERS: _dump(parameters_content(outcome, report)).encode(),
        CALIBRATED_URDF: outcome.urdf.encode(),
        REPORT: (json.dumps(report, indent=1, allow_nan=False) + "\n").encode(),
        PAGE: render_page(report, curves).encode(),
        INFORMATION: information_bytes(outcome.estimate.information),
        CURVES: curves.to_bytes(),
    }
    write_directory(target, RESULT, files, overwrite or None)
    return target


def read_result(directory: str | Path) -> StoredResult:
    """Read a result directory.

    Raises
    ------
    ResultError
        It is no result directory, or a file in it is missing, damaged or of another version.
    """
    path = Path(directory)
    if not path.is_dir():
        raise ResultError(f"{path}: no such result directory; check the path")
    content = _parse(path / PARAMETERS, read_yaml)
    report = _parse(path / REPORT, read_json)
    version = content.get("format")
    if version != REPORT_FORMAT:
        raise ResultError(f"{path / PARAMETERS}: format is {version}, expected {REPORT_FORMAT}; identify again")
    with as_written(path / PARAMETERS):
        robot = content["robot"]
        parameters, prior, covariance = (np.array(content[key], dtype=float) for key in _VECTORS)
        model = load_model(path / CALIBRATED_URDF, _model_options(robot))
        own_hash = robot["model_hash"]
    size = model.layout.size
    shapes = (parameters.shape, prior.shape, covariance.shape)
    if shapes != ((size,), (size,), (size, size)) or model.hash != own_hash:
        raise ResultError(f"{path / PARAMETERS}: does not belong to {CALIBRATED_URDF} beside it; identify again")
    return StoredResult(path, model, parameters, prior, covariance, report)


@contextmanager
def as_written(file: Path) -> Iterator[None]:
    """Turn errors in the use of stored content into a ResultError: the file is damaged."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ResultError(f"{file}: is damaged ({error!r}); identify again") from None


def parameters_content(outcome: IdentificationOutcome, report: Mapping[str, Any]) -> dict[str, Any]:
    """Content of ``parameters.yaml``: what is needed to use the result, and its provenance."""
    estimate = outcome.estimate
    return {
        "format": REPORT_FORMAT,
        "robot": {
            "name": estimate.model.name,
            "model_hash": estimate.model.hash,
            **plain(asdict(estimate.model.options)),
        },
        "status": report["status"],
        "message": report["message"],
        "verdict": report["verdict"],
        "reasons": [reason["message"] for reason in report["reasons"]],
        "links": [{key: link[key] for key in _LINK_KEYS} for link in report["links"]],
        "joints": report["joints"],
        "rotors": report["rotors"],
        "parameter_names": list(estimate.layout.names),
        "parameters": [float(value) for value in estimate.parameters],
        "prior": [float(value) for value in estimate.prior],
        "covariance": [[float(f"{value:.9g}") for value in row] for row in estimate.covariance],
        "provenance": report["provenance"],
    }


def comparison_content(first: StoredResult, second: StoredResult) -> dict[str, Any]:
    """Differences of two results as plain data.

    Raises
    ------
    ResultError
        They are of different robots.
    """
    if first.model.hash != second.model.hash or first.model.link_names != second.model.link_names:
        raise ResultError(
            f"{second.directory}: is of another robot than {first.directory} (their kinematics differ); compare two"
            " results of one robot"
        )
    sets = [ParameterSet(result.model, result.parameters, result.covariance) for result in (first, second)]
    difference, outlines = compare_results(*sets), [_outline(result) for result in (first, second)]
    content: dict[str, Any] = plain(
        {
            "robot": first.model.name,
            "results": outlines,
            "same_data": all(outlines[0][key] == outlines[1][key] for key in ("errors_on", "recordings")),
            "links": [
                {"name": name, "mass": [a["mass"], b["mass"]], "com": [a["com"], b["com"]], "distance": distance}
                for name, a, b, distance in zip(
                    difference.links, first.report["links"], second.report["links"], difference.distance, strict=True
                )
            ],
            "torque_difference": dict(zip(difference.joints, difference.torque_difference, strict=True)),
            "parameters": [asdict(change) for change in difference.changes],
        }
    )
    return content


def render_comparison(content: Mapping[str, Any]) -> str:
    """HTML page of :func:`comparison_content`."""
    return rendered("comparison.html.j2", comparison=content, shown=_COMPARED_PARAMETERS)


def schema_of(file: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file, by a key of :data:`SCHEMAS`."""
    text = (resources.files(__package__) / "schemas" / SCHEMAS[file]).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _model_options(robot: Mapping[str, Any]) -> ModelOptions:
    options = _tuples(robot)
    x, y, z = options["gravity"]
    return ModelOptions(
        robot["locked_joints"],
        options["drive_terms"],
        (x, y, z),
        tuple(Coupling(**coupling) for coupling in options["couplings"]),
        tuple(Rotor(**rotor) for rotor in options["rotors"]),
        robot.get("base", "fixed"),
        tuple(_contact(**contact) for contact in options.get("contacts", ())),
        robot.get("stribeck_speeds", {}),
        # An inertia that the URDF is to give stands there as nothing.
        tuple(Wheel(**{k: v for k, v in wheel.items() if v is not None}) for wheel in options.get("wheels", ())),
        robot.get("effort_scale", {}),
        tuple(UserTerm(**term) for term in options.get("terms", ())),
        tuple(robot.get("without_stribeck", ())),
        robot.get("transition_speeds", {}),
        robot.get("joint_names", {}),
    )


def _contact(name: str, frame: str, plate: Mapping[str, Any] | None) -> Contact:
    return Contact(name, frame, None if plate is None else Plate(**plate))


def _tuples(value: Any) -> Any:
    """Replace lists by tuples, as dataclasses have them."""
    if isinstance(value, Mapping):
        return {key: _tuples(element) for key, element in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _dump(content: dict[str, Any]) -> str:
    text: str = yaml.dump(content, Dumper=_DUMPER, sort_keys=False, default_flow_style=None, width=10_000)
    return "# Inertial parameters about the joint frame origins, SI: m, m c (x y z), I (xx xy yy xz yz zz).\n" + text


def _parse(path: Path, parser: Any) -> dict[str, Any]:
    try:
        content = parser(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultError(f"{path.parent}: has no {path.name}, so it is no result directory; check the path") from None
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except FormatError as error:
        raise ResultError(f"{path}: is damaged ({error}); identify again") from None
    except UnicodeDecodeError:
        raise ResultError(f"{path}: is damaged (it is not text); identify again") from None
    if not isinstance(content, dict):
        raise ResultError(f"{path}: is damaged; identify again")
    return content


def _outline(result: StoredResult) -> dict[str, Any]:
    report = result.report
    section = next(name for name in ("validation", "blocks", "train") if name in report)
    return {
        "directory": str(result.directory),
        "verdict": report["verdict"],
        "created": report["provenance"]["created"],
        "errors_on": section,
        "relative_error": report[section]["relative_error"],
        "channels": report["channels"],
        "rms_error": report[section]["rms_error"],
        "recordings": report[section]["recordings"],
    }
