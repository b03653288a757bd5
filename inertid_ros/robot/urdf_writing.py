"""Write estimated parameters back into the URDF that they were identified for."""

from collections.abc import Mapping

import numpy as np
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import URDF_INERTIA, is_consistent
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf import text as markup
from inertid_ros.robot.urdf.joints import rigidly_joined

from .model import RobotModel

_INERTIA = {"mass": ("value",), "inertia": URDF_INERTIA}  # numbers of an <inertial>


def write_urdf(model: RobotModel, bodies: Array, friction: Mapping[str, Array] | None = None) -> str:
    """Return the URDF with other inertial parameters; all other bytes stay the same.

    A moving link gets the inertia of its whole body. Links fixed to a moving link get zero inertia: without an
    ``<inertial>``, MuJoCo would compute inertia from their collision shapes. Links behind locked joints keep their
    inertia (:attr:`RobotModel.body_locked`), which is subtracted from the body. A fixed base does not change. Inertial
    origins have ``rpy="0 0 0"``, and numbers read back exactly.

    Parameters
    ----------
    bodies : (nb, 10), parameters of the moving bodies about their joint frames.
    friction : ``viscous`` [N m s/rad or N s/m] and ``coulomb`` [N m or N] to ``(n,)``, written as damping and friction
        of ``<dynamics>``; joints with NaN keep their values.

    Raises
    ------
    ModelError
        A body is not physically consistent, or has less inertia than its links behind locked joints.
    """
    unlocked = np.asarray(bodies, dtype=float) - model.body_locked
    _check(model, bodies, unlocked)
    children: dict[tuple[str, str, str], list[str]] = {}
    for name, pi in zip(model.link_names, unlocked, strict=True):
        children["link", name, "inertial"] = markup.inertial_lines(pi)
    for name in _lumped_links(model):
        children["link", name, "inertial"] = markup.inertial_lines(np.zeros(10))
    if friction is not None:
        for name, *values in zip(model.joint_names, friction["viscous"], friction["coulomb"], strict=True):
            if np.isfinite(values).all():
                line = '<dynamics damping="{!r}" friction="{!r}"/>'.format(*map(float, values))
                children["joint", name, "dynamics"] = [line]
    return markup.with_children(model.urdf, children)


def _lumped_links(model: RobotModel) -> list[str]:
    """Links fixed to a moving link that have inertia, or a collision shape from which MuJoCo would compute inertia."""
    root = parsing.parse_description(model.urdf)
    massive = {name for name, link in parsing.by_name(root, "link").items() if _has_inertia(link)}
    return [name for link in model.link_names for name in rigidly_joined(root, link)[1:] if name in massive]


def _has_inertia(link: etree._Element) -> bool:
    inertial = link.find("inertial")
    if inertial is None:
        return link.find("collision") is not None
    return any(parsing.number(inertial, tag, name, default=0.0) for tag, names in _INERTIA.items() for name in names)


def _check(model: RobotModel, bodies: Array, unlocked: Array) -> None:
    if unlocked.shape != model.body_prior.shape:
        raise ModelError(f"bodies have shape {unlocked.shape}, the model needs {model.body_prior.shape}")
    for name, whole, pi in zip(model.link_names, bodies, unlocked, strict=True):
        if not is_consistent(whole):
            raise ModelError(f"link '{name}': parameters are not physically consistent; they are not written to a URDF")
        if pi.any() and not is_consistent(pi):
            raise ModelError(
                f"link '{name}': the links behind its locked joints have more inertia than the whole body; lock fewer"
                " joints or correct those links"
            )
