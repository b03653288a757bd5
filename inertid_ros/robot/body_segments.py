"""Bodies without joints whose poses are each measured, such as the segments of a person."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.robot import DRIVE_TERMS, RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.urdf import joints as urdf_joints
from inertid_ros.robot.urdf.units import check_units

from .contacts import check_contacts, contacts_of
from .layout import ParameterLayout
from .model import RobotModel, warn_of_inconsistent


def segments_of_urdf(text: str, root: etree._Element, options: RobotOptions) -> RobotModel:
    """Model of the moving links with mass; joints of the URDF give only the pose in which results are drawn."""
    for key in ("rotors", "loads"):
        if getattr(options, key):
            raise ModelError(f"robot.{key}: are not part of the equations of robot.base segments; remove them")
    full = urdf_joints.full_model(root, options.gravity, free=True)
    data = full.createData()
    pin.forwardKinematics(full, data, pin.neutral(full))
    links = urdf_joints.moving_links(root, tuple(full.names)[2:], True)
    segments = [(link, full.inertias[index].toDynamicParameters(), data.oMi[index])
        for index, link in enumerate(links, start=1) if full.inertias[index].mass > 0]
    if not segments:
        raise ModelError(f"URDF robot '{root.get('name')}': no link has mass; give <inertial> of every segment")
    names, bodies, poses = zip(*segments, strict=True)
    model = body_segment_model(root.get("name") or "robot", names, np.array(bodies), options.gravity, poses)
    check_units(full, names, model.body_prior)
    warn_of_inconsistent("URDF link", model.link_names, model.body_prior)
    contacts = contacts_of(options)
    check_contacts(model.pinocchio, contacts)
    return replace(model, urdf=text, options=options, contacts=contacts)


def wrench_frame(model: RobotModel, q: Array) -> tuple[Array, Array]:
    """Axes ``(3, 3)`` and origin ``(3,)`` or ``(N, 3)`` in the world [m] of the wrench of segments in poses ``q``.

    The world's axes and the origin of the first segment, or, if a plate measures only pressure, the frame of the plate.
    """
    return (np.eye(3), q[:, :3]) if model.ground is None else (model.ground.rotation, np.array(model.ground.xyz))


def body_segment_model(name: str, segments: Sequence[str], prior: Array,
        gravity: Sequence[float] = (0.0, 0.0, -9.81), poses: Sequence[pin.SE3] = ()) -> RobotModel:
    """Model of bodies without joints, each of which moves freely.

    Parameters
    ----------
    prior : (nb, 10), parameters of the segments in their own frames.
    gravity : ``(3,)`` m/s^2 in the world.
    poses : poses in which the segments are drawn; by default all in the origin.

    Raises
    ------
    ModelError
        A name is given twice, or the prior has a wrong shape, no mass or a value that is not finite.
    """
    prior = np.asarray(prior, dtype=float)
    if len(set(segments)) != len(segments) or prior.shape != (len(segments), BODY_PARAMETERS):
        raise ModelError(
            f"{name}: {len(segments)} segments and a prior of shape {prior.shape}; give each its own name and ten"
            " parameters")
    if not np.isfinite(prior).all() or (prior[:, 0] <= 0).any():
        raise ModelError(f"{name}: the prior of a segment has no mass or is not finite; give a rough guess")
    model = pin.Model()
    model.name = name
    model.gravity.linear = np.array(gravity, dtype=float)
    drawn = poses or [pin.SE3.Identity()] * len(segments)
    for segment, parameters, pose in zip(segments, prior, drawn, strict=True):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pose, segment)
        model.appendBodyToJoint(joint, pin.Inertia.FromDynamicParameters(parameters), pin.SE3.Identity())
        model.addBodyFrame(segment, joint, pin.SE3.Identity(), 0)
    nothing = np.zeros(0)
    x, y, z = map(float, gravity)
    return RobotModel(
        name=name, urdf="", pinocchio=model, layout=ParameterLayout(tuple(segments), (), ()), body_prior=prior,
        body_locked=np.zeros_like(prior), drive_prior=dict.fromkeys(DRIVE_TERMS, nothing),
        limits=urdf_joints.JointLimits(nothing, nothing, nothing, nothing),
        options=RobotOptions(drive_terms=(), gravity=(x, y, z), base="segments"))
