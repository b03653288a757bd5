"""Bodies that differ from the URDF: known loads of recordings, perturbed bodies that simulate a wrong prior, and
estimated bodies, which are written back into the URDF.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.robot import LoadOptions
from inertid_ros.config.simulation import PerturbationOptions
from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing, text as markup
from inertid_ros.robot.urdf.joints import rigidly_joined

_DRAWS_PER_MASS_CHANGE = 100  # before the mass change is halved
_INERTIA = {"mass": ("value",), "inertia": inertial.URDF_INERTIA}  # numbers of an <inertial>


def load_bodies(model: RobotModel, loads: Mapping[str, LoadOptions], recording: str) -> Array:
    """``(nb, 10)`` parameters that the loads of a recording add to the links.

    A recording carries the loads whose patterns match its name, see :func:`matches`.
    ModelError if the link of a load is unknown or does not move, or if the inertia of a load is impossible.
    """
    bodies = np.zeros((len(model.link_names), inertial.BODY_PARAMETERS))
    for name, load in loads.items():
        body, parameters = _placed(model, name, load)
        if matches(recording, load.recordings):
            bodies[body] += parameters
    return bodies


def matches(recording: str, patterns: Iterable[str]) -> bool:
    """True if a pattern matches the name of a recording or its file name, with or without suffix."""
    names = {recording, Path(recording).name, Path(recording).stem}
    return any(fnmatch(name, pattern) for pattern in patterns for name in names)


def _placed(model: RobotModel, name: str, load: LoadOptions) -> tuple[int, Array]:
    """Index of the body that carries a load, and parameters of the load in the frame of the body."""
    tree = model.pinocchio
    if not tree.existFrame(load.link, pin.FrameType.BODY):  # a joint may have the same name
        raise ModelError(f"load '{name}': the URDF has no link '{load.link}'; name the link that holds it")
    frame = tree.frames[tree.getFrameId(load.link, pin.FrameType.BODY)]
    if frame.parentJoint == 0:
        raise ModelError(f"load '{name}': link '{load.link}' does not move, so that the load has no effect")
    body = pin.Inertia(load.mass, np.array(load.com), inertial.symmetric(load.inertia or np.zeros(6)))
    # A load without inertia is a point mass, which is allowed although it is not strictly consistent.
    if load.inertia and not inertial.is_consistent(body.toDynamicParameters()[None]).all():
        raise ModelError(f"load '{name}': the inertia is impossible; give it about the centre of mass")
    return int(frame.parentJoint) - 1, np.array((frame.placement.act(body)).toDynamicParameters())


def perturb(model: RobotModel, rng: np.random.Generator, options: PerturbationOptions | None = None) -> Array:
    """``(nb, 10)`` perturbed parameters of the moving bodies of a robot; all are physically consistent.

    Links behind locked joints keep their parameters, so that the result can be written to a URDF.
    """
    unlocked = model.consistent_body_prior - model.body_locked
    return np.array([perturb_body(pi, rng, options) if pi.any() else pi for pi in unlocked]) + model.body_locked


def perturb_body(pi: Array, rng: np.random.Generator, options: PerturbationOptions | None = None) -> Array:
    """One body ``(10,)`` with point masses added or removed ([Lee2019]_ sec. B.2, eq. B.2.11).

    ``P + sum_i dm eta_i [x_i; 1] [x_i; 1]^T``: the mass change ``dm`` is uniform in ``[-d m, d m]``, the shares
    ``eta_i`` are uniform on the simplex, the points ``x_i`` uniform in the ellipsoid of the body. If the
    result is not physically consistent, points are drawn again, and after many draws the mass change is halved.
    """
    options = options or PerturbationOptions()
    P, region = inertial.pseudo_inertia(pi), inertial.Ellipsoid.from_body(pi)
    change = options.mass_uncertainty * float(pi[0]) * rng.uniform(-1.0, 1.0)
    while True:
        for _ in range(_DRAWS_PER_MASS_CHANGE):
            shares = rng.dirichlet(np.ones(options.point_masses))
            points = region.uniform(rng, options.point_masses, options.region_scale)
            points = np.column_stack([points, np.ones(options.point_masses)])
            perturbed = inertial.from_pseudo_inertia(P + change * np.einsum("i,ij,ik->jk", shares, points, points))
            if inertial.is_consistent(perturbed):
                return perturbed
        change *= 0.5


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
        if not inertial.is_consistent(whole):
            raise ModelError(f"link '{name}': parameters are not physically consistent; they are not written to a URDF")
        if pi.any() and not inertial.is_consistent(pi):
            raise ModelError(
                f"link '{name}': the links behind its locked joints have more inertia than the whole body; lock fewer"
                " joints or correct those links")
