"""Content of report.json (an outcome as plain data) and of curves.npz (the curves for its page)."""

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.formats import read_arrays
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, mass_com_inertia
from inertid_ros.data.screening.recording_health import EffortSpectrum
from inertid_ros.identification.assessment.curves import FrictionCurve, PredictionCurves
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.outcome import IdentificationOutcome, decide
from inertid_ros.robot.layout import COUPLING_TERMS
from inertid_ros.robot.model import GIVEN_URDF
from inertid_ros.robot.urdf.text import urdf_changes

REPORT_FORMAT = 1  # version of report.json and parameters.yaml
ERROR_SECTIONS = {"validation": "held-out recordings", "blocks": "blocks of the fitted data, each held out in turn",
    "train": "the fitted data"}
"""Sections of errors in a report and their data, the most conclusive first."""
_SOLUTION_KEYS = ("status", "iterations", "seconds", "objective", "gap")
_BODY_KEYS = ("mass", "com", "inertia")
_Curve = TypeVar("_Curve")


def report_content(outcome: IdentificationOutcome) -> dict[str, Any]:
    """Content of ``report.json``; numbers that are not finite are None."""
    estimate, assessment = outcome.estimate, outcome.assessment
    content: dict[str, Any] = {"format": REPORT_FORMAT, "robot": estimate.model.name, "status": outcome.status,
        "message": outcome.message, **outcome.gate.content(), "joint_names": estimate.model.joint_names,
        "channels": estimate.equations.channels, "residual_deviation": estimate.residual_deviation,
        "effective_samples": estimate.effective_counts, **_errors(outcome)}
    solution, confidence = estimate.solution, assessment.confidence
    content |= {
        "bands": outcome.bands,
        "predictions": outcome.predictions,
        "links": _links(outcome),
        "joints": _joints(estimate),
        "couplings": _couplings(estimate),
        "rotors": _rotors(estimate),
        "compensation": _compensation(estimate),
        "terms": _terms(estimate),
        "drive_gains": _drive_gains(outcome),
        "base_parameters": _base_parameters(estimate),
        "statements": estimate.identifiability,
        "solver": {"name": solution.solver, **{key: getattr(solution, key) for key in _SOLUTION_KEYS},
            "prior_spread": estimate.prior_spread},
        # Standard deviation of predicted torque at random states of the robot, per joint.
        "confidence": None if confidence is None else {"deviation": confidence.share, "joint": confidence.joint,
            "torque_deviation": confidence.deviation, "rms_torque": confidence.torque},
        "rounds": _rounds(outcome),
        "effort_delay_s": estimate.delay,
        "timing": outcome.timing,
        "peak_memory_mb": outcome.peak_memory_mb,
        "provenance": outcome.provenance,
        "next_action": outcome.next_action,
        "ellipsoids": assessment.ellipsoids,
        "coverage": assessment.coverage,
        "feasibility": assessment.feasibility,
        "correlated_pairs": assessment.correlated,
        "urdf_changes": urdf_changes(estimate.model.urdf, outcome.urdf),
        "delay": None if estimate.delay_found is None else {**asdict(estimate.delay_found),
            "significant": estimate.delay_found.significant, "removed": estimate.delay},
        "health": [health.figures for health in outcome.health]}
    return plain(content)


def _errors(outcome: IdentificationOutcome) -> dict[str, Any]:
    """Errors on fitted and on held-out data; ``prior`` has the name and the errors of the prior."""
    assessment, validation, blocks = outcome.assessment, outcome.validation, outcome.blocks
    content = {"train": asdict(assessment.train_errors)}
    prior = {"train": asdict(assessment.train_errors_of_prior)}
    if validation is not None:
        content["validation"], prior["validation"] = asdict(validation.calibrated), asdict(validation.prior)
    if blocks is not None:
        content["blocks"] = {"count": blocks.blocks, **asdict(blocks.calibrated)}
        prior["blocks"] = asdict(blocks.prior)
    # The top level of ``prior`` has the errors on held-out recordings, or on fitted recordings if there are none.
    name = outcome.estimate.model.prior_name
    return {**content, "prior": {"name": name, **prior.get("validation", prior["train"]), **prior}}


def section_of_errors(report: Mapping[str, Any]) -> str:
    """Most conclusive section of errors in a report, a key of :data:`ERROR_SECTIONS`."""
    return next((name for name in ERROR_SECTIONS if name in report), "train")


def prior_label(report: Mapping[str, Any]) -> str:
    """Heading for values of the prior: ``URDF as given``, or ``prior`` if it is not the URDF."""
    return GIVEN_URDF if report["prior"].get("name", GIVEN_URDF) == GIVEN_URDF else "prior"


def _bodies(estimate: Estimate, columns: slice) -> dict[str, Any]:
    """Columns of ``k`` bodies; ``inertia`` (3x3) is about the com, ``parameters`` about the joint frame origin."""
    parameters = estimate.parameters[columns].reshape(-1, BODY_PARAMETERS)
    return {**dict(zip(_BODY_KEYS, mass_com_inertia(parameters), strict=True)), "parameters": parameters,
        "standard_deviation": estimate.standard_deviation[columns].reshape(parameters.shape),
        "interval": estimate.interval[columns].reshape(*parameters.shape, 2)}


def _links(outcome: IdentificationOutcome) -> list[dict[str, Any]]:
    """Moving links with their prior."""
    estimate = outcome.estimate
    columns = {"name": estimate.model.link_names, **_bodies(estimate, slice(0, estimate.layout.body_size)),
        "min_pseudo_inertia_eigenvalue": estimate.min_eigenvalues,
        "geodesic_distance_to_prior": estimate.distance_to_prior,
        "prior": records(dict(zip(_BODY_KEYS, mass_com_inertia(estimate.model.body_prior), strict=True)))}
    return [{**link, **asdict(body)} for link, body in zip(records(columns), outcome.assessment.bodies, strict=True)]


def _rotors(estimate: Estimate) -> list[dict[str, Any]]:
    """Motors that are bodies of their own, with parameters in the frame of the rotor."""
    layout = estimate.layout
    bodies = records(_bodies(estimate, slice(layout.body_size, layout.rotor_end)))
    return [{"name": rotor.name, "joint": rotor.joint, "link": rotor.link, "ratio": rotor.ratio, **body}
        for rotor, body in zip(layout.rotors, bodies, strict=True)]


def _compensation(estimate: Estimate) -> list[dict[str, Any]]:
    """Links of the model whose gravity the controller subtracts from the efforts."""
    layout = estimate.layout
    bodies = records(_bodies(estimate, slice(layout.rotor_end, layout.inertial_size)))
    return [{"name": link, **body} for link, body in zip(layout.links, bodies, strict=False)]


def _joints(estimate: Estimate) -> list[dict[str, Any]]:
    """Identified drive terms of every joint, with standard deviations; NaN for joints without any equation."""
    layout, of_joints, names = estimate.layout, estimate.equations.of_joints, estimate.model.joint_names
    drives = estimate.information.contained[layout.inertial_size : layout.coupling_start]
    measured = np.any(drives.reshape(len(layout.drive_terms), len(names)), axis=0)

    def terms(values: Array, joint: int) -> dict[str, Any]:
        unknown = np.full(values.shape[1:], np.nan)
        return {term: values[layout.drive(term)][joint] if measured[joint] else unknown for term in layout.drive_terms}

    residual = of_joints(estimate.residual_deviation)
    outliers = None if estimate.outliers is None else of_joints(estimate.outliers)
    return [{"name": name, **terms(estimate.parameters, i),
        "standard_deviation": terms(estimate.standard_deviation, i), "interval": terms(estimate.interval, i),
        "residual_deviation": residual[i], "stribeck_speed": layout.stribeck_speed[i],
        "transition_speed": layout.transition_speed[i], "outliers": None if outliers is None else outliers[i]}
        for i, name in enumerate(names)]


def _couplings(estimate: Estimate) -> list[dict[str, Any]]:
    """Drives that move several joints, with standard deviations."""
    layout = estimate.layout

    def by_term(values: Array) -> list[dict[str, Any]]:
        rows = values[layout.coupling_start : layout.term_start]
        count = len(COUPLING_TERMS)
        return records({term: rows[index::count] for index, term in enumerate(COUPLING_TERMS)})

    quantities = estimate.parameters, estimate.standard_deviation, estimate.interval
    linear = [{**asdict(coupling), **values, "standard_deviation": deviation, "interval": interval}
        for coupling, values, deviation, interval in zip(layout.couplings, *map(by_term, quantities), strict=True)]
    posed = [(term, [dict(zip(term.labels, quantity[layout.term(index)], strict=True)) for quantity in quantities])
        for index, term in enumerate(layout.terms) if term.labels]
    return linear + [{"name": term.name, "joints": list(term.by_joint), "ratios": [], **values,
        "position": estimate.model.options.couplings[term.name].position, "standard_deviation": deviation,
        "interval": interval} for term, (values, deviation, interval) in posed]


def _terms(estimate: Estimate) -> list[dict[str, Any]]:
    """User terms, each with its gain in held-out blocks, which decides whether the term is kept."""
    layout = estimate.layout
    columns = {term: layout.term(index) for index, term in enumerate(layout.terms)}
    return [{"name": choice.term.name, "joint": choice.term.joint, "expressions": choice.term.expressions,
        "kept": choice.kept, "values": estimate.parameters[columns.get(choice.term, slice(0, 0))],
        "standard_deviation": estimate.standard_deviation[columns.get(choice.term, slice(0, 0))],
        "held_out_gain": choice.gain, "held_out_gain_deviation": choice.deviation,
        "body_log_odds": choice.body_log_odds} for choice in estimate.term_choices if not choice.term.labels]


def _drive_gains(outcome: IdentificationOutcome) -> list[dict[str, Any]] | None:
    """Gain of every joint's drive with its 95 % interval; None if gains were not requested."""
    gains = outcome.drive_gains
    if gains is None:
        return None
    factor = np.exp(NORMAL_95 * gains.relative_deviation)
    columns = {"joint": gains.joint_names, "gain": gains.values,
        "interval": np.column_stack([gains.values / factor, gains.values * factor]), "identified": gains.identified,
        "effort_scale": outcome.estimate.model.effort_scale}
    if gains.damping.size:
        options = outcome.estimate.model.options
        for key, values in (("command_kp", options.command_kp), ("command_kd", options.command_kd)):
            columns[key] = [values[joint] for joint in gains.joint_names]
    return records(columns)


def _base_parameters(estimate: Estimate) -> dict[str, Any]:
    base = estimate.base
    deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", base.projection, estimate.covariance, base.projection), 0))
    values: Array = base.projection @ estimate.parameters
    interval = values[:, None] + NORMAL_95 * deviation[:, None] * [-1.0, 1.0]
    alone = np.isin(base.independent, base.alone)
    interval[alone] = estimate.interval[base.independent[alone]]
    return {"count": base.count, "condition_number": base.condition_number, "names": base.names, "values": values,
        "standard_deviation": deviation, "interval": interval}


def _rounds(outcome: IdentificationOutcome) -> dict[str, Any] | None:
    """Rounds so far, and the reason for stopping; None for a single round."""
    history, options, last = outcome.history, outcome.rounds[0], outcome.decision
    if last is None or options.rounds == 1:
        return None
    gains = [*(decide(history[: index + 1], options).gain for index in range(len(history) - 1)), last.gain]
    done = [{**asdict(entry), "gain": gain} for entry, gain in zip(history, gains, strict=True)]
    return {"done": done, "stopped": last.reason}


def records(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Rows of a table as dictionaries, with column names as keys."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def json_text(content: Any) -> str:
    """Text of a JSON object for files and stdout."""
    return json.dumps(plain(content), indent=1, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Convert NumPy values and dataclasses for JSON and YAML; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(element) for key, element in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


@dataclass(frozen=True)
class Curves:
    """Curves for a page: predictions per recording, friction per joint, effort spectra per recording."""

    predictions: tuple[PredictionCurves, ...] = ()
    friction: tuple[FrictionCurve, ...] = ()
    spectra: tuple[EffortSpectrum, ...] = ()

    @classmethod
    def from_outcome(cls, outcome: IdentificationOutcome) -> "Curves":
        """Curves of an outcome in the precision of ``curves.npz``, so that outcome and file give identical pages."""
        spectra = [health.spectrum for health in outcome.health if health.spectrum is not None]
        predictions, friction = outcome.assessment.predictions, outcome.assessment.friction
        return cls(*(tuple(map(_rounded, group)) for group in (predictions, friction, spectra)))  # type: ignore

    @classmethod
    def read(cls, path: Path) -> "Curves":
        """Curves of a result directory; empty if the file is missing or cannot be read."""
        try:
            content = read_arrays(path)
            return cls(_read(content, "predictions", PredictionCurves), _read(content, "friction", FrictionCurve),
                _read(content, "spectra", EffortSpectrum))
        except (OSError, ValueError, LookupError, TypeError):
            return cls()

    def to_bytes(self) -> bytes:
        """Content of ``curves.npz``: arrays named ``<group>/<index>/<attribute>``, in single precision."""
        arrays: dict[str, Any] = {}
        for group in fields(self):
            for index, curve in enumerate(getattr(self, group.name)):
                for name, value in vars(curve).items():
                    array = np.float32(value) if isinstance(value, np.ndarray) else np.array(value)
                    arrays[f"{group.name}/{index}/{name}"] = array
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        return buffer.getvalue()


def _read(content: Mapping[str, Array], group: str, kind: type[_Curve]) -> tuple[_Curve, ...]:
    count = len({name.split("/")[1] for name in content if name.startswith(f"{group}/")})
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    curves = [{name: content[f"{group}/{index}/{name}"] for name in names} for index in range(count)]
    # The file stores texts and numbers as zero-dimensional arrays.
    return tuple(kind(**{name: np.float64(value) if value.ndim else value.item() for name, value in curve.items()})
        for curve in curves)


def _rounded(curve: _Curve) -> _Curve:
    arrays = {name: value for name, value in vars(curve).items() if isinstance(value, np.ndarray)}
    return replace(curve, **{name: np.float64(np.float32(value)) for name, value in arrays.items()})  # type: ignore
