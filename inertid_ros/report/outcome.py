"""Outcome: one identification with all that was measured of it, and the same as plain data for report.json."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence, torque_confidence
from inertid_ros.identification.assessment.validation import TorqueErrors, Validation, torque_errors
from inertid_ros.identification.rounds import Round, RoundDecision, RoundsOptions, decide
from inertid_ros.robot.bodies.inertial_parameters import is_consistent, mass_com_inertia
from inertid_ros.robot.bodies.layout import COUPLING_TERMS
from inertid_ros.robot.urdf_writing import write_urdf

from .provenance import Provenance, peak_memory_mb

FORMAT = 1  # of report.json and parameters.yaml
URDF = "calibrated.urdf"


@dataclass(frozen=True)
class Outcome:
    """What a result directory and a report message are made from.

    Attributes
    ----------
    train, held_out : tuple of Samples
        Prepared samples; ``held_out`` is empty where nothing was held out.
    validation : Validation or None
        None where nothing was held out.
    timing : mapping
        Stage to seconds.
    rounds : tuple
        Options of the rounds that this is one of, and what was known after each before it.
    """

    estimate: Estimate
    train: tuple[Samples, ...]
    held_out: tuple[Samples, ...]
    validation: Validation | None
    provenance: Provenance
    timing: Mapping[str, float]
    rounds: tuple[RoundsOptions, tuple[Round, ...]] = (RoundsOptions(), ())

    @cached_property
    def train_errors(self) -> TorqueErrors:
        """Errors of the estimate on the data it was fitted to."""
        return torque_errors(self.estimate.equations, self.estimate.parameters, self.train)

    @cached_property
    def train_errors_of_prior(self) -> TorqueErrors:
        """Errors of the URDF as given on the same data."""
        return torque_errors(self.estimate.equations, self.estimate.prior, self.train)

    @property
    def passed(self) -> bool:
        """Whether real bodies can have the parameters and held-out data, if there is any, speaks for them."""
        return self.realizable and (self.validation is None or self.validation.passed)

    @property
    def realizable(self) -> bool:
        """Whether every body, and what it has beyond links behind locked joints, is physically consistent."""
        estimate = self.estimate
        own = estimate.bodies - estimate.model.body_locked
        return estimate.consistent and bool((is_consistent(own) | ~own.any(axis=1)).all())

    @cached_property
    def urdf(self) -> str:
        """The calibrated URDF; the one given where no real bodies have the parameters, for no simulator takes those."""
        model = self.estimate.model
        return write_urdf(model, self.estimate.bodies) if self.realizable else model.urdf

    @property
    def _status(self) -> str:
        if not self.passed:
            return "rejected"
        return "not validated" if self.validation is None else "passed"

    @property
    def _message(self) -> str:
        if self.validation is not None and not self.validation.passed:
            return self.validation.message
        if not self.realizable:
            return f"rejected: no real bodies have these parameters; {URDF} is the one given"
        return "not validated: no held-out recording" if self.validation is None else self.validation.message

    @cached_property
    def confidence(self) -> TorqueConfidence | None:
        """How well torque is known anywhere in the robot's range; None on a free base."""
        return None if self.estimate.model.free else torque_confidence(self.estimate)

    @property
    def history(self) -> tuple[Round, ...]:
        """What was known after each round, this one last; empty on a free base."""
        if self.confidence is None:
            return ()
        return (*self.rounds[1], Round.of(self.estimate.recordings, self.confidence))

    @property
    def decision(self) -> RoundDecision | None:
        """Whether another round is worth its time; None on a free base."""
        return decide(self.history, self.rounds[0]) if self.history else None

    @cached_property
    def report(self) -> dict[str, Any]:
        """Content of ``report.json``; numbers that are not finite are None."""
        estimate, validation = self.estimate, self.validation
        prior: dict[str, Any] = {"train": errors_content(self.train_errors_of_prior)}
        content: dict[str, Any] = {
            "format": FORMAT,
            "robot": estimate.model.name,
            "status": self._status,
            "message": self._message,
            "joint_names": list(estimate.model.joint_names),
            "channels": list(estimate.equations.channels),
            "residual_deviation": estimate.residual_deviation,
            "effective_samples": estimate.effective_counts,
            "train": errors_content(self.train_errors),
        }
        if validation is not None:
            content["validation"] = errors_content(validation.calibrated)
            prior["validation"] = errors_content(validation.prior)
        # The URDF's errors on the data that decide stand at the top, as those of the result do in their sections.
        content["prior"] = {**prior.get("validation", prior["train"]), **prior}
        content |= {
            "links": links_content(estimate),
            "joints": joints_content(estimate),
            "couplings": couplings_content(estimate),
            "rotors": rotors_content(estimate),
            "base_parameters": _base_parameters(estimate),
            "statements": [asdict(entry) for entry in estimate.identifiability],
            "solver": _solver(estimate),
            "confidence": _confidence(self.confidence),
            "rounds": _rounds(self.history, self.rounds[0]),
            "effort_delay_s": estimate.delay,
            "timing": dict(self.timing),
            "peak_memory_mb": peak_memory_mb(),
            "provenance": asdict(self.provenance),
        }
        report: dict[str, Any] = plain(content)
        return report


def errors_content(errors: TorqueErrors) -> dict[str, Any]:
    """One section of torque errors; lists are in the order of the channels."""
    return {
        "relative_error": errors.relative_error,
        "rms_torque": errors.rms_torque,
        "rms_error": errors.rms_error,
        "samples": errors.samples,
        "recordings": errors.recordings,
    }


def links_content(estimate: Estimate) -> list[dict[str, Any]]:
    """Every moving body; inertia (3x3) about the centre of mass, ``parameters`` about the joint frame origin."""
    mass, com, inertia = mass_com_inertia(estimate.bodies)
    prior_mass, prior_com, prior_inertia = mass_com_inertia(estimate.model.body_prior)
    deviations = estimate.layout.bodies(estimate.standard_deviation)
    return [
        {
            "name": name,
            "mass": mass[i],
            "com": com[i],
            "inertia": inertia[i],
            "parameters": estimate.bodies[i],
            "standard_deviation": deviations[i],
            "min_pseudo_inertia_eigenvalue": estimate.min_eigenvalues[i],
            "geodesic_distance_to_prior": estimate.distance_to_prior[i],
            "prior": {"mass": prior_mass[i], "com": prior_com[i], "inertia": prior_inertia[i]},
        }
        for i, name in enumerate(estimate.model.link_names)
    ]


def rotors_content(estimate: Estimate) -> list[dict[str, Any]]:
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
        }
        for i, rotor in enumerate(estimate.layout.rotors)
    ]


def joints_content(estimate: Estimate) -> list[dict[str, Any]]:
    """Every joint's drive terms that were identified, with standard deviations."""
    terms = estimate.layout.drive_terms
    values = {term: estimate.parameters[estimate.layout.drive(term)] for term in terms}
    deviations = {term: estimate.standard_deviation[estimate.layout.drive(term)] for term in terms}
    of_joints = estimate.equations.of_joints
    residual = of_joints(estimate.residual_deviation)
    outliers = None if estimate.outliers is None else of_joints(estimate.outliers)
    return [
        {
            "name": name,
            **{term: values[term][i] for term in terms},
            "standard_deviation": {term: deviations[term][i] for term in terms},
            "residual_deviation": residual[i],
            "stribeck_speed": estimate.layout.stribeck_speed[i],
            "outliers": None if outliers is None else outliers[i],
        }
        for i, name in enumerate(estimate.model.joint_names)
    ]


def couplings_content(estimate: Estimate) -> list[dict[str, Any]]:
    """Every drive that turns with several joints, with standard deviations."""
    layout, size = estimate.layout, len(COUPLING_TERMS)
    content = []
    for index, coupling in enumerate(layout.couplings):
        start = layout.coupling_start + size * index
        rows = slice(start, start + size)
        values, deviations = estimate.parameters[rows], estimate.standard_deviation[rows]
        content.append(
            {
                **asdict(coupling),
                **dict(zip(COUPLING_TERMS, values, strict=True)),
                "standard_deviation": dict(zip(COUPLING_TERMS, deviations, strict=True)),
            }
        )
    return content


def _base_parameters(estimate: Estimate) -> dict[str, Any]:
    base = estimate.base
    deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", base.projection, estimate.covariance, base.projection), 0))
    values: Array = base.projection @ estimate.parameters
    return {
        "count": base.count,
        "condition_number": base.condition_number,
        "names": base.names,
        "values": values,
        "standard_deviation": deviation,
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


def _rounds(history: Sequence[Round], options: RoundsOptions) -> dict[str, Any] | None:
    """The rounds so far, and why the last one was the last; None where there is only ever one."""
    if not history or options.rounds == 1:
        return None
    decisions = [decide(history[: index + 1], options) for index in range(len(history))]
    done = [{**asdict(entry), "gain": decision.gain} for entry, decision in zip(history, decisions, strict=True)]
    return {"done": done, "stopped": decisions[-1].reason}


def plain(value: Any) -> Any:
    """NumPy to what JSON and YAML know; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
