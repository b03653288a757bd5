"""Identified parameters and reports as messages."""

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import Header

from inertid_ros import msg
from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import mass_com_inertia
from inertid_ros.identification.assessment.estimate import COMBINED, IDENTIFIED, PARTLY, PRIOR, Estimate
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.identification.assessment.validation import Validation
from inertid_ros.report.results import REPORT, Result, as_written
from inertid_ros.robot.layout import COUPLING_TERMS, ParameterLayout
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import by_axis

_KNOWLEDGE = {
    PRIOR: msg.InertialParameters.LEFT_AT_PRIOR,
    PARTLY: msg.InertialParameters.IN_COMBINATION,  # with the prior
    COMBINED: msg.InertialParameters.IN_COMBINATION,
    IDENTIFIED: msg.InertialParameters.IDENTIFIED}
_VERDICT_CONSTANTS = {
    Verdict.USE: msg.InertialParameters.USE, Verdict.CARE: msg.InertialParameters.USE_WITH_CARE,
    Verdict.REJECT: msg.InertialParameters.DO_NOT_USE}


def to_inertial_parameters(
    estimate: Estimate, validation: Validation | None, gate: GateDecision, sequence: int, stamp: Time
) -> msg.InertialParameters:
    """Make the message for controllers from an estimate and its verdict."""
    model = estimate.model
    return msg.InertialParameters(
        header=Header(stamp=stamp), sequence=sequence, model_hash=model.hash,
        **_verdict_fields(gate.verdict, validation is not None), reasons=[str(reason) for reason in gate.reasons],
        validation_relative_error=float("nan") if validation is None else validation.calibrated.relative_error,
        **value_fields(model, estimate.parameters, estimate.covariance),
        knowledge=[_KNOWLEDGE[entry.verdict] for entry in estimate.identifiability])


def stored_parameters(result: Result, stamp: Time) -> msg.InertialParameters:
    """Make the message for controllers from a result directory; ResultError if its report has no verdict."""
    with as_written(result.directory / REPORT):
        verdict = _verdict_fields(Verdict(result.report["verdict"]), "validation" in result.report)
    return msg.InertialParameters(
        header=Header(stamp=stamp), sequence=1, model_hash=result.model.hash, validation_relative_error=float("nan"),
        **verdict, **value_fields(result.model, result.parameters, result.covariance))


def _verdict_fields(verdict: Verdict, is_validated: bool) -> dict[str, int]:
    fields = msg.InertialParameters
    status = fields.PASSED if is_validated else fields.NOT_VALIDATED
    status = fields.REJECTED if verdict is Verdict.REJECT else status
    return {"validation_status": status, "verdict": _VERDICT_CONSTANTS[verdict]}


def value_fields(model: RobotModel, parameters: Array, covariance: Array) -> dict[str, Any]:
    """Return fields of InertialParameters for parameters ``(p,)`` and their covariance ``(p, p)``."""
    layout = model.layout
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    spans = {term: layout.drive(term) for term in layout.drive_terms}
    drives = dict.fromkeys(DRIVE_TERMS, np.zeros(model.joints))
    drives |= {term: parameters[span] for term, span in spans.items()}
    return {
        "links": _links(model.link_names, layout.bodies(parameters), layout.bodies(deviation)),
        "joints": _joints(layout, drives, {term: deviation[span] for term, span in spans.items()}),
        "couplings": _couplings(layout, parameters, deviation),
        "terms": _terms(layout, parameters, deviation),
        "parameter_names": list(layout.names),
        "covariance": array("d", covariance.ravel()),  # a list would be checked number by number
    }


def known_parameters(
        model: RobotModel, bodies: Array, drives: Mapping[str, Array], stamp: Time, parameters: Array | None = None
) -> msg.InertialParameters:
    """Make a message without standard deviations from bodies ``(nb, 10)`` and drive terms ``(n,)`` by name.

    ``parameters (p,)``, if given, hold the coupled drives and the user terms.
    """
    layout, unknown = model.layout, np.full(model.layout.size, np.nan)
    further = {} if parameters is None else {
        "couplings": _couplings(layout, parameters, unknown), "terms": _terms(layout, parameters, unknown)}
    return msg.InertialParameters(
        header=Header(stamp=stamp), model_hash=model.hash, validation_relative_error=float("nan"),
        links=_links(model.link_names, bodies, np.full(bodies.shape, np.nan)), joints=_joints(layout, drives, {}),
        **further)


def _links(link_names: Sequence[str], bodies: Array, deviations: Array) -> list[msg.LinkInertia]:
    split = mass_com_inertia(bodies)
    return [
        msg.LinkInertia(
            name=name, mass=float(split.mass[index]), com=Point(**by_axis(split.com[index])),
            inertia=split.inertia[index][np.triu_indices(3)], standard_deviation=deviations[index])
        for index, name in enumerate(link_names)]


def _joints(
        layout: ParameterLayout, drives: Mapping[str, Array],
        deviations: Mapping[str, Array]) -> list[msg.JointDynamics]:
    """Return messages of joints from drive terms ``(n,)`` by name; NaN for terms without a standard deviation."""
    unknown = np.full(len(layout.joints), np.nan)
    return [
        msg.JointDynamics(
            name=name, **{term: float(drives[term][index]) for term in DRIVE_TERMS},
            standard_deviation=np.array([deviations.get(term, unknown)[index] for term in DRIVE_TERMS]),
            stribeck_speed=float(layout.stribeck_speed[index]), transition_speed=float(layout.transition_speed[index]))
        for index, name in enumerate(layout.joints)]


def _couplings(layout: ParameterLayout, parameters: Array, deviation: Array) -> list[msg.CoupledDrive]:
    count, couplings = len(COUPLING_TERMS), []
    for index, coupling in enumerate(layout.couplings):
        span = slice(layout.coupling_start + index * count, layout.coupling_start + (index + 1) * count)
        values = dict(zip(COUPLING_TERMS, parameters[span].tolist(), strict=True))
        joints, ratios = list(coupling.joints), list(coupling.ratios)
        couplings.append(
            msg.CoupledDrive(
                name=coupling.name, joints=joints, ratios=ratios, standard_deviation=deviation[span], **values))
    return couplings


def _terms(layout: ParameterLayout, parameters: Array, deviation: Array) -> list[msg.UserTerm]:
    return [
        msg.UserTerm(
            name=term.name, joint=joint, expressions=list(expressions),
            values=parameters[layout.term(index)].tolist(), standard_deviation=deviation[layout.term(index)].tolist())
        for index, term in enumerate(layout.terms) for joint, expressions in term.by_joint.items()]


def to_report(
        report: Mapping[str, Any], parameters: msg.InertialParameters, directory: str) -> msg.IdentificationReport:
    """Make the message for dashboards from the content of ``report.json`` and the parameters."""
    validated, prior = report.get("validation", report["train"]), report["prior"]
    links, solver, base = report["links"], report["solver"], report["base_parameters"]
    sources = report["provenance"]["recordings"]
    channels = report.get("channels", report["joint_names"])
    joint_rows = [channels.index(name) for name in report["joint_names"] if name in channels]
    return msg.IdentificationReport(
        header=parameters.header, sequence=parameters.sequence, model_hash=parameters.model_hash,
        validation_status=parameters.validation_status, verdict=parameters.verdict, reasons=parameters.reasons,
        message=report["message"], train=[source["name"] for source in sources if source["role"] == "train"],
        validation=[source["name"] for source in sources if source["role"] == "validation"],
        joint_names=report["joint_names"], link_names=[link["name"] for link in links],
        train_relative_error=_number(report["train"]["relative_error"]),
        validation_relative_error=parameters.validation_relative_error,
        prior_relative_error=_number(prior["relative_error"]),
        rms_torque=[_number(validated["rms_torque"][row]) for row in joint_rows],
        rms_error=[_number(validated["rms_error"][row]) for row in joint_rows],
        rms_error_prior=[_number(prior["rms_error"][row]) for row in joint_rows],
        min_pseudo_inertia_eigenvalue=[_number(link["min_pseudo_inertia_eigenvalue"]) for link in links],
        geodesic_distance_to_prior=[_number(link["geodesic_distance_to_prior"]) for link in links],
        base_parameter_count=int(base["count"]), condition_number=_number(base["condition_number"]),
        solver=str(solver["name"]), solver_status=str(solver["status"]), solver_iterations=int(solver["iterations"]),
        solver_seconds=_number(solver["seconds"]), report_json=json.dumps(report), result_directory=directory)


def _number(value: float | None) -> float:
    """Return a number from ``report.json``; NaN for None, which stands for a number that is not finite."""
    return float("nan") if value is None else float(value)
