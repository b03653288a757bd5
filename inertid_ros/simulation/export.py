"""Write the parameters of a result for MuJoCo, Drake and Isaac Lab, and compare their torque with the result's torque.

MuJoCo's own writer keeps six digits, so MJCF is written here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml
from lxml import etree
from scipy.spatial.transform import Rotation

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import FormatError, ModelError, first_few
from inertid_ros.core.formats import MAX_TEXT_BYTES, open_file
from inertid_ros.core.inertial_parameters import inertia_about_origin, mass_com_inertia, transform
from inertid_ros.core.samples import Samples
from inertid_ros.core.worker import read_apart
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf.joints import full_model, position_range
from inertid_ros.robot.urdf.text import add_transmission, numbers as written

from .mujoco_model import import_mujoco, joint_frames, refusals

MJCF_TERMS = {"rotor_inertia": "armature", "viscous": "damping", "coulomb": "frictionloss", "stiffness": "stiffness"}
TERMS = {
    "mjcf": (*MJCF_TERMS,), "drake": ("rotor_inertia", "viscous"), "isaaclab": ("rotor_inertia", "viscous", "coulomb")}
"""Drive terms that a format can hold; all formats hold bodies."""
REST = "smooth change of friction's sign, spin of rotors"  # torque without a parameter of its own
_ROUNDING = 1e-9  # of a joint's torque
_AXIS_TOLERANCE = 1e-3  # m and rad; MJCF files round to about five digits
_ISAACLAB_COMMENT = """\
# Values for actuators of Isaac Lab from 2.2 on: ImplicitActuatorCfg(**values, stiffness=..., damping=...), with the
# values of this file. SI: kg m^2 or kg, N m or N, N m s/rad or N s/m. Bodies: the URDF of inertid export --to drake.
"""
_CHANGED_INERTIA = ("inertiafromgeom", "balanceinertia", "boundmass", "boundinertia", "settotalmass")


def simulated_part(model: RobotModel, parameters: Array, name: str) -> tuple[Array, dict[str, Array]]:
    """Part of the parameters ``(p,)`` that the format ``name`` holds.

    Returns the bodies ``(nb, 10)``, with the rotors on them as if these did not spin, and the terms of MuJoCo's joints,
    ``(n,)`` each; terms that the format cannot hold are zero.
    """
    layout, tree = model.layout, model.pinocchio
    bodies, drives = layout.bodies(parameters).copy(), {term: np.zeros(model.joints) for term in MJCF_TERMS}
    for term in set(TERMS[name]) & set(layout.drive_terms):
        drives[term] = np.maximum(parameters[layout.drive(term)], 0.0)
    for rotor, pi in zip(layout.rotors, layout.further_bodies(parameters), strict=False):
        frame = tree.frames[tree.getFrameId(rotor.link, pin.FrameType.BODY)]
        pose = frame.placement * pin.SE3(pin.rpy.rpyToMatrix(*rotor.rpy), np.array(rotor.xyz, dtype=float))
        if frame.parentJoint > 0:
            bodies[frame.parentJoint - 1] += transform(pi, pose.rotation, pose.translation)
        spin = rotor.unit_axis @ inertia_about_origin(pi) @ rotor.unit_axis
        drives["rotor_inertia"][model.joint_names.index(rotor.joint)] += rotor.ratio**2 * spin
    return bodies, drives


def simulated_torque(model: RobotModel, bodies: Array, drives: Mapping[str, Array], states: Samples) -> Array:
    """``(N, n)`` torque [N m or N] of a :func:`simulated_part`; friction changes its sign with the velocity."""
    parameters = np.concatenate([bodies.ravel(), np.zeros(model.layout.size - bodies.size)])
    motions = (states.a, states.v, np.sign(states.v), states.q)
    torque = ForceEquations(model).predict(parameters, states)
    return torque + sum(drives[term] * motion for term, motion in zip(MJCF_TERMS, motions, strict=True))


@dataclass(frozen=True)
class Export:
    """Text in a simulator's format, and torque over random states of the robot, as root mean square [N m or N].

    Attributes
    ----------
    torque : (n,), torque of the result, without offsets, which belong to the sensors
    error : (n,), difference between the torque of the text and the torque of the result
    lost : map from parts of the result without counterpart to their torque ``(n,)``
    """

    text: str
    torque: Array
    error: Array
    lost: Mapping[str, Array]


def export(result: Result, name: str, onto: str | Path = "") -> Export:
    """Write a result in the format ``name`` of :data:`TERMS`; MJCF as a new model, or into the joints of ``onto``.

    Raises ModelError: the base is free, a body is not consistent, MuJoCo is not installed or refuses the model, or
    ``onto`` is not an MJCF file or belongs to another robot.
    """
    model, layout = result.model, result.model.layout
    if model.free:
        raise ModelError(f"{result.directory}: only robots on a fixed base are exported; use its calibrated.urdf")
    parameters, every = layout.without_compensation(result.parameters), np.arange(layout.size)
    parameters[layout.drive("offset")] = 0.0
    bodies, drives = simulated_part(model, parameters, name)
    urdf = write_urdf(model, bodies, drives)
    if name == "isaaclab":
        stribeck = parameters[layout.drive("stribeck")] if "stribeck" in layout.drive_terms else 0.0
        text = _isaaclab_text(model, drives, drives["coulomb"] + np.maximum(stribeck, 0.0))
    else:
        text = _drake_text(model, drives, urdf) if name == "drake" else _mjcf_text(model, drives, urdf, onto)
    causes = {**{term: every[layout.drive(term)] for term in layout.drive_terms if term not in TERMS[name]},
        "couplings": every[layout.coupling_start : layout.term_start],
        **{term.name: every[layout.term(index)] for index, term in enumerate(layout.terms)}}
    states, equations = sample_states(model), ForceEquations(model)
    lost = {cause: equations.predict(np.where(np.isin(every, columns), parameters, 0.0), states)
        for cause, columns in causes.items()}
    torque = equations.predict(parameters, states)
    error = torque - simulated_torque(model, bodies, drives, states)
    lost[REST] = error - sum(lost.values())
    size, off, *sizes = (np.sqrt(np.mean(values**2, axis=0)) for values in (torque, error, *lost.values()))
    large = {cause: values for cause, values in zip(lost, sizes, strict=True) if (values > _ROUNDING * size).any()}
    return Export(text, size, off, large)


def _isaaclab_text(model: RobotModel, drives: Mapping[str, Array], breakaway: Array) -> str:
    """YAML with fields of Isaac Lab's actuators; ``breakaway (n,)`` is the friction of joints at rest [N m or N]."""
    fields = {"armature": drives["rotor_inertia"], "friction": breakaway, "dynamic_friction": drives["coulomb"],
        "viscous_friction": drives["viscous"]}
    names = [re.escape(name) for name in model.joint_names]  # Isaac Lab takes names as regular expressions
    by_joint = {key: dict(zip(names, values.tolist(), strict=True)) for key, values in fields.items()}
    content = {"joint_names_expr": names, **by_joint}
    return _ISAACLAB_COMMENT + yaml.safe_dump(content, sort_keys=False, width=1000)


def _drake_text(model: RobotModel, drives: Mapping[str, Array], urdf: str) -> str:
    """URDF with rotor inertias in Drake's elements of the joints' transmissions."""
    given = parsing.parse_xml(urdf.encode())
    root = etree.Element(given.tag, dict(given.attrib), nsmap={**given.nsmap, "drake": parsing.DRAKE})
    root[:] = given[:]
    present = {element.find("joint").get("name"): element for element in root.findall("transmission")
        if element.find("joint") is not None and "SimpleTransmission" in (element.findtext("type") or "")}
    for joint, inertia in zip(model.joint_names, drives["rotor_inertia"], strict=True):
        if joint not in present:
            present[joint] = add_transmission(root, joint).getparent()
        actuator = present[joint].find("actuator")
        if actuator is None:
            actuator = etree.SubElement(present[joint], "actuator", name=f"{joint}_motor")
        for tag, value in ((f"{{{parsing.DRAKE}}}rotor_inertia", inertia), (f"{{{parsing.DRAKE}}}gear_ratio", 1.0)):
            etree.strip_elements(actuator, tag, with_tail=False)
            etree.SubElement(actuator, tag, value=written(value))
    return _written(root)


def _mjcf_text(model: RobotModel, drives: Mapping[str, Array], urdf: str, onto: str | Path) -> str:
    description = parsing.parse_description(urdf)
    full = full_model(description, model.options.gravity, free=False)
    root = _read_mjcf(onto) if onto else _mjcf_of_urdf(model, description)
    joints = {str(joint.get("name")): joint for joint in root.iter("joint") if joint.getparent().tag == "body"}
    elements = [parsing.by_name(description, "joint")[name] for name in list(full.names)[1:]]
    poses = _poses_in_bodies(onto, joints, full, elements) if onto else [pin.SE3.Identity()] * len(elements)
    for element, pose, inertia in zip(elements, poses, list(full.inertias)[1:], strict=True):
        body = joints[element.get("name")].getparent()
        _set_inertial(body, transform(inertia.toDynamicParameters(), pose.rotation, pose.translation))
        for fixed in body.iterdescendants("body"):
            if fixed.find("joint") is None:
                _set_inertial(fixed, np.zeros(10))
    for index, name in enumerate(model.joint_names):
        joints[name].attrib.pop("springdamper", None)
        joints[name].set("springref", "0")
        for term, key in MJCF_TERMS.items():
            joints[name].set(key, written(drives[term][index]))
    etree.strip_attributes(root, *_CHANGED_INERTIA)
    text = _written(root)
    if not onto:
        with refusals("MJCF of the result"):
            import_mujoco().MjModel.from_xml_string(text)
    return text


def _read_mjcf(path: str | Path) -> etree._Element:
    try:
        with open_file(path) as file:  # not a pipe, which MuJoCo could not read again
            root = parsing.parse_xml(file.read(MAX_TEXT_BYTES))
    except (FormatError, etree.XMLSyntaxError) as error:
        raise ModelError(f"{path}: is not XML ({error}); give the <mujoco> file of the robot") from None
    if root.tag != "mujoco":
        raise ModelError(f"{path}: is a <{root.tag}>; give the <mujoco> file of the robot")
    return root


def _check_joints(joints: Mapping[str, etree._Element], names: list[str], onto: str | Path) -> None:
    """Refuse an MJCF that lacks joints of the URDF, or whose robot has further joints."""
    _check_names(names, joints, onto)
    bodies = {joints[name].getparent() for name in names}
    moved = {str(joint.get("name")) for body in bodies for joint in body.iter("joint", "freejoint")}
    if others := sorted(moved - set(names)):
        raise ModelError(f"{onto}: joints that are not in the URDF move the robot ({first_few(others)}); remove them")
    if len(bodies) < len(names):
        raise ModelError(f"{onto}: a body has several joints, and the URDF has a link between them; split the body")


def _check_names(names: Sequence[str], joints: Mapping[str, object], onto: str | Path) -> None:
    """Refuse an MJCF without joints of the URDF, before or after MuJoCo has replicated and attached its bodies."""
    if missing := [name for name in names if name not in joints]:
        raise ModelError(f"{onto}: has no joint {first_few(missing)}, but {first_few([*joints], 8)}; give the file with"
            " the bodies of this robot, and name its joints as in the URDF")


def _poses_in_bodies(onto: str | Path, given: Mapping[str, etree._Element], full: pin.Model,
        elements: list[etree._Element]) -> list[pin.SE3]:
    """Pose of every link of the URDF in its body of an MJCF; ModelError if joints or their axes differ.

    ``given`` are the joints of the MJCF, ``elements`` the joints of the URDF in the order of ``full``.
    """
    names = list(full.names)[1:]
    _check_joints(given, names, onto)
    joints, bodies = read_apart(str(onto), joint_frames, str(onto))
    data, poses = full.createData(), list[pin.SE3]()
    pin.forwardKinematics(full, data, pin.neutral(full))
    _check_names(names, joints, onto)
    frames = [joints[name] for name in names]
    # The root link's frame in MuJoCo's world: the frame of the body of its name, or by the first joint.
    root, kinds = bodies.get(full.frames[1].name, frames[0][-1] * data.oMi[1].inverse()), import_mujoco().mjtJoint
    for element, (kind, along, anchor, body), placed in zip(elements, frames, list(data.oMi)[1:], strict=True):
        link, slides = root * placed, element.get("type") == "prismatic"
        axis = link.rotation @ parsing.axis(element)
        turned = float(np.linalg.norm(axis - along))
        off = 0.0 if slides else float(np.linalg.norm(np.cross(axis, anchor - link.translation)))
        if kind != (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE)[slides] or max(turned, off) > _AXIS_TOLERANCE:
            raise ModelError(
                f"{onto}: the axis of joint '{element.get('name')}' differs from the URDF's axis ({off * 1e3:.3g} mm"
                f" and {turned:.3g} rad at position zero); give the MJCF of this robot, or leave out --onto")
        poses.append(body.inverse() * link)
    return poses


def _mjcf_of_urdf(model: RobotModel, description: etree._Element) -> etree._Element:
    """MJCF with the links, joints and limits of a URDF, without shapes and inertia."""
    joints, root = parsing.by_name(description, "joint"), etree.Element("mujoco", model=model.name)
    etree.SubElement(root, "compiler", angle="radian")
    etree.SubElement(root, "option", gravity=written(model.options.gravity))
    world = etree.SubElement(root, "worldbody")
    (base,) = parsing.by_name(description, "link").keys() - {parsing.ends(joint)[1] for joint in joints.values()}
    bodies = {base: world if base == "world" else etree.SubElement(world, "body", name=base)}
    while waiting := [joint for joint in joints.values() if parsing.ends(joint)[1] not in bodies]:
        joint = next(joint for joint in waiting if parsing.ends(joint)[0] in bodies)
        (parent, child), (xyz, rpy) = parsing.ends(joint), parsing.origin(joint)
        pose = {"pos": written(xyz), "quat": written(Rotation.from_euler("xyz", rpy).as_quat()[[3, 0, 1, 2]])}
        bodies[child] = etree.SubElement(bodies[parent], "body", pose, name=child)
        if joint.get("type") != "fixed":
            etree.SubElement(bodies[child], "joint", _joint_attributes(joint))
    return root


def _joint_attributes(joint: etree._Element) -> dict[str, str]:
    effort, limits = parsing.number(joint, "limit", "effort", 0.0), position_range(joint)
    dynamics = [[parsing.number(joint, "dynamics", key, 0.0)] for key in ("damping", "friction")]
    numbers: dict[str, Any] = {"axis": parsing.axis(joint), "damping": dynamics[0], "frictionloss": dynamics[1],
        "range": limits if np.isfinite(limits).all() else (), "actuatorfrcrange": (-effort, effort)[: 2 * (effort > 0)]}
    return {"name": str(joint.get("name")), "type": "slide" if joint.get("type") == "prismatic" else "hinge",
        **{key: written(values) for key, values in numbers.items() if len(values)}}


def _set_inertial(body: etree._Element, pi: Array) -> None:
    for former in body.findall("inertial"):
        body.remove(former)
    mass, com, inertia = mass_com_inertia(pi)
    full = {"fullinertia": written([*np.diagonal(inertia), *inertia[np.triu_indices(3, 1)]])}  # must be positive
    moments = full if mass else {"diaginertia": "0 0 0"}
    body.insert(0, etree.Element("inertial", pos=written(com), mass=written(float(mass)), **moments))


def _written(root: etree._Element) -> str:
    etree.indent(root)
    return str(etree.tostring(root, encoding="unicode")) + "\n"
