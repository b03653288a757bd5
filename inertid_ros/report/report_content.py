"""Content of report.json, an outcome as plain data, and of curves.npz, the curves that its page plots."""

import io
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import mass_com_inertia
from inertid_ros.data.screening.recording_health import EffortSpectrum, RecordingHealth
from inertid_ros.identification.assessment.curves import FrictionCurve, PredictionCurves
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence
from inertid_ros.identification.outcome import IdentificationOutcome, decide
from inertid_ros.robot.layout import COUPLING_TERMS
from inertid_ros.robot.urdf.text import urdf_changes

REPORT_FORMAT = 1  # of report.json and parameters.yaml
_Curve = TypeVar("_Curve")


def report_content(outcome: IdentificationOutcome) -> dict[str, Any]:
    """Content of ``report.json``; numbers that are not finite are None."""
    estimate, validation = outcome.estimate, outcome.validation
    prior: dict[str, Any] = {"train": asdict(outcome.train_errors_of_prior)}
    content: dict[str, Any] = {
        "format": REPORT_FORMAT,
        "robot": estimate.model.name,
        "status": outcome.status,
        "message": outcome.message,
        **outcome.gate.content(),
        "joint_names": list(estimate.model.joint_names),
        "channels": list(estimate.equations.channels),
        "residual_deviation": estimate.residual_deviation,
        "effective_samples": estimate.effective_counts,
        "train": asdict(outcome.train_errors),
    }
    if validation is not None:
        content["validation"] = asdict(validation.calibrated)
        prior["validation"] = asdict(validation.prior)
    if outcome.blocks is not None:
        content["blocks"] = {"count": outcome.blocks.blocks, **asdict(outcome.blocks.calibrated)}
        prior["blocks"] = asdict(outcome.blocks.prior)
    # Errors of the URDF on the deciding data are at the top of their section, as those of the result are.
    content["prior"] = {**prior.get("validation", prior["train"]), **prior}
    content |= {
        "bands": [asdict(band) for band in outcome.bands],
        "links": _links(outcome),
        "joints": _joints(estimate),
        "couplings": _couplings(estimate),
        "rotors": _rotors(estimate),
        "terms": _terms(estimate),
        "drive_gains": _drive_gains(outcome),
        "base_parameters": _base_parameters(estimate),
        "statements": [asdict(parameter) for parameter in estimate.identifiability],
        "solver": _solver(estimate),
        "confidence": _confidence(outcome.confidence),
        "rounds": _rounds(outcome),
        "effort_delay_s": estimate.delay,
        "timing": dict(outcome.timing),
        "peak_memory_mb": outcome.peak_memory_mb,
        "provenance": asdict(outcome.provenance),
        **_details(outcome),
    }
    report: dict[str, Any] = plain(content)
    return report


def _rotors(estimate: Estimate) -> list[dict[str, Any]]:
    """Motors that are bodies of their own; inertia (3x3) about the centre of mass, in the rotor's frame."""
    mass, com, inertia = mass_com_inertia(estimate.rotors)
    first = len(estimate.layout.links)
    return [
        {
            "name": rotor.name,
            "joint": rotor.joint,
            "link": rotor.link,
            "ratio": rotor.ratio,
            "mass": mass[i],
            "com": com[i],
            "inertia": inertia[i],
            "parameters": estimate.rotors[i],
            "standard_deviation": estimate.standard_deviation[estimate.layout.body(first + i)],
            "interval": estimate.interval[estimate.layout.body(first + i)],
        }
        for i, rotor in enumerate(estimate.layout.rotors)
    ]


def _joints(estimate: Estimate) -> list[dict[str, Any]]:
    """Identified drive terms of every joint, with standard deviations."""
    terms = estimate.layout.drive_terms
    values = {term: estimate.parameters[estimate.layout.drive(term)] for term in terms}
    deviations = {term: estimate.standard_deviation[estimate.layout.drive(term)] for term in terms}
    intervals = {term: estimate.interval[estimate.layout.drive(term)] for term in terms}
    of_joints = estimate.equations.of_joints
    residual = of_joints(estimate.residual_deviation)
    outliers = None if estimate.outliers is None else of_joints(estimate.outliers)
    return [
        {
            "name": name,
            **{term: values[term][i] for term in terms},
            "standard_deviation": {term: deviations[term][i] for term in terms},
            "interval": {term: intervals[term][i] for term in terms},
            "residual_deviation": residual[i],
            "stribeck_speed": estimate.layout.stribeck_speed[i],
            "transition_speed": estimate.layout.transition_speed[i],
            "outliers": None if outliers is None else outliers[i],
        }
        for i, name in enumerate(estimate.model.joint_names)
    ]


def _couplings(estimate: Estimate) -> list[dict[str, Any]]:
    """Every drive that moves several joints, with standard deviations."""
    layout, shape = estimate.layout, (-1, len(COUPLING_TERMS))
    rows = slice(layout.coupling_start, layout.coupling_start + len(layout.couplings) * shape[1])
    values, deviations = (array[rows].reshape(shape) for array in (estimate.parameters, estimate.standard_deviation))
    intervals = estimate.interval[rows].reshape(*shape, 2)
    return [
        {
            **asdict(coupling),
            **dict(zip(COUPLING_TERMS, value, strict=True)),
            "standard_deviation": dict(zip(COUPLING_TERMS, deviation, strict=True)),
            "interval": dict(zip(COUPLING_TERMS, interval, strict=True)),
        }
        for coupling, value, deviation, interval in zip(layout.couplings, values, deviations, intervals, strict=True)
    ]


def _terms(estimate: Estimate) -> list[dict[str, Any]]:
    """Every user term, with the gain in held-out blocks that decided on it."""
    layout = estimate.layout
    columns = {term: layout.term(index) for index, term in enumerate(layout.terms)}
    return [
        {
            "name": choice.term.name,
            "joint": choice.term.joint,
            "expressions": choice.term.expressions,
            "kept": choice.kept,
            "values": estimate.parameters[columns.get(choice.term, slice(0, 0))],
            "standard_deviation": estimate.standard_deviation[columns.get(choice.term, slice(0, 0))],
            "held_out_gain": choice.gain,
            "held_out_gain_deviation": choice.deviation,
            "body_log_odds": choice.body_log_odds,
        }
        for choice in estimate.term_choices
    ]


def _drive_gains(outcome: IdentificationOutcome) -> list[dict[str, Any]] | None:
    """Gain of every joint's drive with its 95 % interval; None if gains were not requested."""
    gains = outcome.drive_gains
    if gains is None:
        return None
    factor = np.exp(1.96 * gains.relative_deviation)
    scales = outcome.estimate.model.effort_scale
    rows = zip(gains.joint_names, gains.values, factor, gains.identified, scales, strict=True)
    return [
        {
            "joint": joint,
            "gain": gain,
            "interval": [gain / wide, gain * wide],
            "identified": identified,
            "effort_scale": scale,
        }
        for joint, gain, wide, identified, scale in rows
    ]


def _base_parameters(estimate: Estimate) -> dict[str, Any]:
    base = estimate.base
    deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", base.projection, estimate.covariance, base.projection), 0))
    values: Array = base.projection @ estimate.parameters
    interval = values[:, None] + NORMAL_95 * deviation[:, None] * [-1.0, 1.0]
    alone = np.isin(base.independent, base.alone)
    interval[alone] = estimate.interval[base.independent[alone]]
    return {
        "count": base.count,
        "condition_number": base.condition_number,
        "names": base.names,
        "values": values,
        "standard_deviation": deviation,
        "interval": interval,
    }


def _solver(estimate: Estimate) -> dict[str, Any]:
    solution = estimate.solution
    return {
        "name": solution.solver,
        "status": solution.status,
        "iterations": solution.iterations,
        "seconds": solution.seconds,
        "objective": solution.objective,
        "gap": solution.gap,
        "prior_spread": estimate.prior_spread,
    }


def _confidence(confidence: TorqueConfidence | None) -> dict[str, Any] | None:
    """Standard deviation of predicted torque at random states of the robot, per joint."""
    if confidence is None:
        return None
    return {
        "deviation": confidence.share,
        "joint": confidence.joint,
        "torque_deviation": confidence.deviation,
        "rms_torque": confidence.torque,
    }


def _rounds(outcome: IdentificationOutcome) -> dict[str, Any] | None:
    """Rounds so far, and the reason for the end; None for a single round."""
    history, options, last = outcome.history, outcome.rounds[0], outcome.decision
    if last is None or options.rounds == 1:
        return None
    gains = [*(decide(history[: index + 1], options).gain for index in range(len(history) - 1)), last.gain]
    done = [{**asdict(entry), "gain": gain} for entry, gain in zip(history, gains, strict=True)]
    return {"done": done, "stopped": last.reason}


def plain(value: Any) -> Any:
    """Convert NumPy values for JSON and YAML; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(element) for key, element in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _links(outcome: IdentificationOutcome) -> list[dict[str, Any]]:
    """Moving bodies; inertia (3x3) about the centre of mass, ``parameters`` about the joint frame origin."""
    estimate = outcome.estimate
    mass, com, inertia = mass_com_inertia(estimate.bodies)
    prior_mass, prior_com, prior_inertia = mass_com_inertia(estimate.model.body_prior)
    deviations = estimate.layout.bodies(estimate.standard_deviation)
    intervals = estimate.interval[: estimate.layout.body_size].reshape(*deviations.shape, 2)
    return [
        {
            "name": name,
            "mass": mass[i],
            "com": com[i],
            "inertia": inertia[i],
            "parameters": estimate.bodies[i],
            "standard_deviation": deviations[i],
            "interval": intervals[i],
            "min_pseudo_inertia_eigenvalue": estimate.min_eigenvalues[i],
            "geodesic_distance_to_prior": estimate.distance_to_prior[i],
            "prior": {"mass": prior_mass[i], "com": prior_com[i], "inertia": prior_inertia[i]},
            **asdict(outcome.details.bodies[i]),
        }
        for i, name in enumerate(estimate.model.link_names)
    ]


def _details(outcome: IdentificationOutcome) -> dict[str, Any]:
    """Next action, ellipsoids, coverage, margins, correlated pairs, changes of the URDF, and health of the data."""
    details, delay = outcome.details, outcome.estimate.delay_found
    return {
        "next_action": asdict(outcome.next_action),
        "ellipsoids": [asdict(ellipsoid) for ellipsoid in details.ellipsoids],
        "coverage": [asdict(joint) for joint in details.coverage],
        "feasibility": [asdict(margin) for margin in details.feasibility],
        "correlated_pairs": [asdict(pair) for pair in details.correlated],
        "urdf_changes": [asdict(change) for change in urdf_changes(outcome.estimate.model.urdf, outcome.urdf)],
        "delay": None
        if delay is None
        else {**asdict(delay), "significant": delay.significant, "removed": outcome.estimate.delay},
        "health": [_health(recording) for recording in outcome.health],
    }


def _health(health: RecordingHealth) -> dict[str, Any]:
    """Figures of a recording; its spectrum is a curve."""
    content = {key: value for key, value in vars(health).items() if key != "spectrum"}
    content["cutoff_hz"] = None if health.spectrum is None else health.spectrum.cutoff_hz
    return content


@dataclass(frozen=True)
class Curves:
    """Curves that a page plots.

    Attributes
    ----------
    predictions : tuple of PredictionCurves
        Of every held-out recording, or of the fitted ones without held-out data.
    friction : tuple of FrictionCurve
        Of every joint whose friction was identified.
    spectra : tuple of EffortSpectrum
        Of every recording with efforts.
    """

    predictions: tuple[PredictionCurves, ...] = ()
    friction: tuple[FrictionCurve, ...] = ()
    spectra: tuple[EffortSpectrum, ...] = ()

    @classmethod
    def from_outcome(cls, outcome: IdentificationOutcome) -> "Curves":
        """Curves of an outcome in the precision of the file, so that pages made from either are the same."""
        spectra = [health.spectrum for health in outcome.health if health.spectrum is not None]
        predictions, friction = outcome.details.predictions, outcome.details.friction
        return cls(*(tuple(map(_rounded, group)) for group in (predictions, friction, spectra)))  # type: ignore

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


def read_curves(path: Path) -> Curves:
    """Curves of a result directory; none if the file is missing or cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        return Curves(
            _read(content, "predictions", PredictionCurves),
            _read(content, "friction", FrictionCurve),
            _read(content, "spectra", EffortSpectrum),
        )
    except (OSError, ValueError, KeyError, TypeError, BadZipFile):
        return Curves()


def _read(content: Mapping[str, Array], group: str, kind: type[_Curve]) -> tuple[_Curve, ...]:
    count = len({name.split("/")[1] for name in content if name.startswith(f"{group}/")})
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return tuple(kind(**{name: _plain(content[f"{group}/{k}/{name}"]) for name in names}) for k in range(count))


def _rounded(curve: _Curve) -> _Curve:
    """A curve with arrays in single precision."""
    arrays = {name: value for name, value in vars(curve).items() if isinstance(value, np.ndarray)}
    return replace(curve, **{name: np.float64(np.float32(value)) for name, value in arrays.items()})  # type: ignore


def _plain(value: Array) -> Any:
    """Return an array, or the text or number that was stored as one."""
    return np.float64(value) if value.ndim else value.item()
