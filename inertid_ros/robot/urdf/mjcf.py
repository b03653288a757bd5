"""URDF text of a robot in an MJCF file, which MuJoCo compiles in another process.

MuJoCo resolves defaults, includes, and inertia from shapes. A body becomes a link with the frame of its last joint;
a body with several joints gets links without mass between them. Joints keep their names.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.errors import ModelError, first_few, log_once, optional_module
from inertid_ros.core.worker import read_apart

from .parsing import DRAKE
from .text import inertial_lines

_ALLOWED_BYTES = 2 * 10**8  # of the files that an MJCF names
_ASSUMED_M = 10.0  # range of a sliding joint without one, in both directions; Pinocchio needs a range
_MASSLESS = pin.Inertia(1e-12, np.zeros(3), 1e-14 * np.eye(3))  # between joints; for zero, a body would be guessed


def import_mujoco() -> Any:
    """The ``mujoco`` module; ModelError without MuJoCo."""
    return optional_module("mujoco", ModelError("this needs MuJoCo, which is not installed; pip install mujoco"))


@contextmanager
def refusals(where: object = "URDF") -> Iterator[None]:
    """Raise ModelError if MuJoCo refuses a model; ``where`` names it."""
    try:
        yield
    except (ValueError, RuntimeError, KeyError) as error:
        raise ModelError(f"{where}: MuJoCo refuses it ({str(error).splitlines()[0]}); fix it") from None


def urdf_of_mjcf(path: Path) -> str:
    """URDF text of an MJCF file; one line is logged about every kind of content that is lost.

    Rotor inertias (``armature``) are written as Drake's elements of transmissions. ModelError: MuJoCo is not installed,
    or refuses the file; WorkerError: reading takes too long, or ends the process.
    """
    if importlib.util.find_spec("mujoco") is None:
        raise ModelError(f"{path}: MJCF is read by MuJoCo, which is not installed; pip install mujoco")
    if not path.is_file():
        raise ModelError(f"{path}: MuJoCo reads an MJCF only from a file; save it as a file")
    text, lost = read_apart(str(path), _converted, str(path), size=_ALLOWED_BYTES)
    for line in lost:
        log_once(f"{path.name}: {line}")
    return text


def _converted(path: str, progress: object) -> tuple[str, list[str]]:
    mujoco = import_mujoco()
    with refusals(path):
        robot = _Robot(mujoco, mujoco.MjSpec.from_file(path), Path(path).parent)
    return robot.urdf(), robot.lost


class _Robot:
    """URDF of a model, and lines about its content that is lost."""

    def __init__(self, mujoco: Any, given: Any, folder: Path) -> None:
        self.model = model = given.compile()
        self.given, self.folder, self.types = given, folder, mujoco
        self.lost, self.unshaped = list[str](), list[str]()  # lines; shapes that a URDF cannot have
        self.free = model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
        self.slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        self.moves = self.slides | (model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)
        self.joints = self._names("joint", model.njnt, ())
        self.links = self._names("body", model.nbody, self.joints)  # Pinocchio locks no joint with a link's name
        self.bodies = self._kept_bodies()
        self.kept = [k for k in range(model.njnt) if self.moves[k] and model.jnt_bodyid[k] in self.bodies]
        self.offsets = np.zeros((model.nbody, 3))  # origin of a link in the frame of its body
        self.root = etree.Element("robot", nsmap={"drake": DRAKE}, name=model.names.split(b"\0")[0].decode() or "robot")

    def _names(self, kind: str, count: int, taken: Sequence[str]) -> list[str]:
        names = list[str]()
        for index in range(count):
            name = getattr(self.model, kind)(index).name or f"{kind}_{index}"
            while name in (*names, *taken):
                name += "_link" if kind == "body" else "_"
            names.append(name)
        return names

    def _kept_bodies(self) -> list[int]:
        """Bodies of the robot, its root first: the world, or the only tree if it floats."""
        model = self.model
        floating = [int(model.jnt_bodyid[k]) for k in np.flatnonzero(self.free)]
        if len(floating) == 1 and set(model.body_rootid[model.jnt_bodyid]) == set(floating):
            name = self.links[floating[0]]
            self.lost.append(f"body '{name}' moves freely; its base is fixed unless robot.base is free")
            return [k for k in range(model.nbody) if model.body_rootid[k] == floating[0]]
        if floating:
            self.lost.append(f"loose objects are left out: {first_few([self.links[body] for body in floating])}")
        return [k for k in range(model.nbody) if model.body_rootid[k] not in floating]

    def urdf(self) -> str:
        for body in self.bodies:
            self._add_link(body)
        self._add_mimics()
        self._tell_losses()
        return str(etree.tostring(self.root, encoding="unicode", pretty_print=True))

    def _add_link(self, body: int) -> None:
        """Add a body with its shapes, behind its joints."""
        model, links = self.model, self.links
        joints = [k for k in self.kept if model.jnt_bodyid[k] == body]
        start, parent = _pose(model.body_pos[body], model.body_quat[body]), int(model.body_parentid[body])
        start.translation -= self.offsets[parent]
        above = links[parent]
        for joint in joints:
            child = links[body] if joint == joints[-1] else f"{self.joints[joint]}_{links[body]}"
            if joint != joints[-1]:
                _set_inertia(etree.SubElement(self.root, "link", name=child), _MASSLESS)
            self._add_joint(joint, above, child, start * pin.SE3(np.eye(3), model.jnt_pos[joint]))
            start, above = pin.SE3(np.eye(3), -model.jnt_pos[joint]), child
        if joints:
            self.offsets[body] = model.jnt_pos[joints[-1]]
        elif body != self.bodies[0]:
            fixed = etree.SubElement(self.root, "joint", name=f"{links[body]}_fixed", type="fixed")
            _connect(fixed, above, links[body], start)
        link = etree.SubElement(self.root, "link", name=links[body])
        pose = _pose(model.body_ipos[body] - self.offsets[body], model.body_iquat[body])
        if model.body_mass[body] > 0:
            inertia = pose.rotation @ np.diag(model.body_inertia[body]) @ pose.rotation.T
            _set_inertia(link, pin.Inertia(float(model.body_mass[body]), pose.translation, inertia))
        first = int(model.body_geomadr[body])
        for shape in range(first, first + int(model.body_geomnum[body])):
            if model.geom_contype[shape] or model.geom_conaffinity[shape]:
                self._add_collision(link, shape, body)

    def _add_joint(self, joint: int, parent: str, child: str, start: pin.SE3) -> None:
        """Add a joint, whose frame is at its ``start`` for the position ``ref``."""
        model, axis = self.model, self.model.jnt_axis[joint]
        zero, dof = -float(model.qpos0[model.jnt_qposadr[joint]]), int(model.jnt_dofadr[joint])
        back = pin.SE3(np.eye(3), zero * axis) if self.slides[joint] else pin.SE3(pin.exp3(zero * axis), np.zeros(3))
        limited = bool(model.jnt_limited[joint])
        kind = "prismatic" if self.slides[joint] else "revolute" if limited else "continuous"
        limits = {"effort": self._largest_effort(joint), "velocity": 0.0}  # zero: not stated
        if kind != "continuous":
            limits["lower"], limits["upper"] = model.jnt_range[joint] if limited else (-_ASSUMED_M, _ASSUMED_M)
        element = etree.SubElement(self.root, "joint", name=self.joints[joint], type=kind)
        _connect(element, parent, child, start * back)
        etree.SubElement(element, "axis", xyz=_numbers(axis))
        friction = {"damping": model.dof_damping[dof], "friction": model.dof_frictionloss[dof]}
        for tag, values in (("limit", limits), ("dynamics", friction)):
            etree.SubElement(element, tag, {key: _numbers(value) for key, value in values.items()})
        drives, rotor = self._actuators(joint), float(model.dof_armature[dof])
        if hasattr(model, "actuator_armature"):
            rotor += float(np.sum(model.actuator_gear[drives, 0] ** 2 * model.actuator_armature[drives]))
        if rotor > 0:
            name = self.joints[joint]
            transmission = etree.SubElement(self.root, "transmission", name=f"{name}_transmission")
            etree.SubElement(transmission, "type").text = "transmission_interface/SimpleTransmission"
            etree.SubElement(transmission, "joint", name=name)
            actuator = etree.SubElement(transmission, "actuator", name=f"{name}_motor")
            etree.SubElement(actuator, f"{{{DRAKE}}}rotor_inertia", value=_numbers(rotor))

    def _actuators(self, joint: int) -> Indices:
        """Indices of the actuators on a joint."""
        kinds = (self.types.mjtTrn.mjTRN_JOINT, self.types.mjtTrn.mjTRN_JOINTINPARENT)
        on_joints = np.isin(self.model.actuator_trntype, kinds)
        return np.flatnonzero(on_joints & (self.model.actuator_trnid[:, 0] == joint))

    def _largest_effort(self, joint: int) -> float:
        """Largest effort of the actuators on a joint [N m or N]; zero if it is not stated."""
        model, drives, bounds = self.model, self._actuators(joint), list[float]()
        forces, commands = (np.abs(values[drives]).max(axis=1) for values in (
            model.actuator_forcerange, model.actuator_gainprm[:, :1] * model.actuator_ctrlrange))
        motors = model.actuator_ctrllimited[drives] & ~self._has_feedback(drives)
        forces = np.where(model.actuator_forcelimited[drives], forces, np.inf)
        forces = np.minimum(forces, np.where(motors, commands, np.inf))
        if len(drives):
            bounds.append(float(np.sum(forces * np.abs(model.actuator_gear[drives, 0]))))
        if model.jnt_actfrclimited[joint]:
            bounds.append(float(np.abs(model.jnt_actfrcrange[joint]).max()))
        return min((bound for bound in bounds if np.isfinite(bound)), default=0.0)

    def _has_feedback(self, drives: Indices) -> Mask:
        """Whether the force of actuators depends on the motion, as that of position actuators."""
        return np.asarray(self.model.actuator_biastype[drives] != self.types.mjtBias.mjBIAS_NONE)

    def _add_collision(self, link: etree._Element, shape: int, body: int) -> None:
        model, kinds, size = self.model, self.types.mjtGeom, self.model.geom_size[shape]
        kind, pose = kinds(int(model.geom_type[shape])), _pose(model.geom_pos[shape], model.geom_quat[shape])
        pose.translation -= self.offsets[body]
        if kind == kinds.mjGEOM_MESH:
            mesh = int(model.geom_dataid[shape])
            given, scale = self.given.mesh(model.mesh(mesh).name), model.mesh_scale[mesh]
            # MuJoCo scales a mesh after it has turned it, a URDF before.
            if (start := int(model.mesh_pathadr[mesh])) < 0 or (np.ptp(scale) > 0 and given.refquat[0] < 1):
                self.unshaped.append(f"a mesh of '{self.links[body]}', without a file or turned")
                return
            reference = _pose(scale * given.refpos, given.refquat)
            pose *= (reference * _pose(model.mesh_pos[mesh], model.mesh_quat[mesh])).inverse()
            file = Path(model.paths[start:].split(b"\0")[0].decode())
            file = file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
            tag, attributes = "mesh", {"filename": str(file), "scale": _numbers(scale)}
        elif kind == kinds.mjGEOM_SPHERE:
            tag, attributes = "sphere", {"radius": _numbers(size[0])}
        elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
            tag = "capsule" if kind == kinds.mjGEOM_CAPSULE else "cylinder"
            attributes = {"radius": _numbers(size[0]), "length": _numbers(2 * size[1])}
        elif kind in (kinds.mjGEOM_BOX, kinds.mjGEOM_ELLIPSOID):  # a box around an ellipsoid
            tag, attributes = "box", {"size": _numbers(2 * size)}
        else:
            self.unshaped.append(f"a {kind.name.rpartition('_')[2].lower()} of '{self.links[body]}'")
            return
        collision = etree.SubElement(link, "collision")
        _place(collision, pose)
        etree.SubElement(etree.SubElement(collision, "geometry"), tag, attributes)

    def _add_mimics(self) -> None:
        """Write linear equalities of two joints as ``<mimic>``, and tell the other equalities."""
        model, open_loops = self.model, list[str]()
        elements = {str(joint.get("name")): joint for joint in self.root.iterchildren("joint")}
        for index in np.flatnonzero(model.eq_active0):
            follower, leader = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
            offset, multiplier, *others = model.eq_data[index, :5]
            if model.eq_type[index] == self.types.mjtEq.mjEQ_JOINT and leader >= 0 and not np.any(others):
                at = model.qpos0[model.jnt_qposadr[[follower, leader]]]
                values = {"multiplier": _numbers(multiplier), "offset": _numbers(at[0] + offset - multiplier * at[1])}
                if {follower, leader} <= set(self.kept):
                    etree.SubElement(elements[self.joints[follower]], "mimic", values, joint=self.joints[leader])
                continue
            open_loops.append(model.equality(index).name or f"equality_{index}")
        if open_loops:
            self.lost.append(
                f"closed loops and other equality constraints are opened: {first_few(open_loops)}; lock the joints that"
                " they move with robot.locked_joints")

    def _tell_losses(self) -> None:
        model, kept, types = self.model, np.array(self.kept, dtype=int), self.types
        own, bodies = np.isin(model.jnt_bodyid, self.bodies), np.array(self.bodies)
        every = {
            "shapes are left out; set excitation.floor_m, or add obstacles": first_few(self.unshaped),
            "ball joints are fixed": self._joined(np.flatnonzero(own & (model.jnt_type == types.mjtJoint.mjJNT_BALL))),
            "springs of joints are no prior; robot.drive_terms with stiffness identifies them": self._joined(
                kept[model.jnt_stiffness[kept] != 0]),
            f"sliding joints without a range get {_ASSUMED_M:g} m; set limits.position": self._joined(
                kept[self.slides[kept] & (model.jnt_limited[kept] == 0)]),
            "tendons are left out": first_few([model.tendon(k).name or str(k) for k in range(model.ntendon)]),
            "actuators that do not act on one joint are left out": first_few([
                model.actuator(k).name or str(k) for k in range(model.nu)
                if not any(k in self._actuators(joint) for joint in self.kept)]),
            "gravity is compensated; set robot.effort gravity_compensated if efforts lack it": first_few(
                [self.links[k] for k in bodies[model.body_gravcomp[bodies] != 0]]),
            "deformable bodies and plugins are left out": str(model.nflex + model.nplugin or ""),
            "excluded contacts are checked by planning": str(model.nexclude or ""),
            "air resistance is left out": "density or viscosity" if model.opt.density or model.opt.viscosity else ""}
        self.lost += [f"{what}: {names}" for what, names in every.items() if names]
        if np.abs(model.opt.gravity - (0.0, 0.0, -9.81)).max() > 1e-9:
            self.lost.append(f"its gravity is not used; set robot.gravity: {model.opt.gravity.tolist()}")
        drives = {self.joints[joint]: self._actuators(joint) for joint in self.kept}
        single = {name: int(on[0]) for name, on in drives.items() if len(on) == 1 and self._has_feedback(on)[0]}
        if single:
            at = [*single.values()]
            squares = model.actuator_gear[at, 0] ** 2
            kp, kd = (", ".join(f"{name}: {gain:.6g}" for name, gain in zip(single, squares * gains, strict=True))
                for gains in (model.actuator_gainprm[at, 0], -model.actuator_biasprm[at, 2]))
            self.lost.append(
                "gains of position actuators are not used; if commands are recorded in place of efforts, set"
                f" robot.effort: position_command, robot.command_kp: {{{kp}}}, robot.command_kd: {{{kd}}}")

    def _joined(self, joints: Indices) -> str:
        return first_few([self.joints[k] for k in joints])


def _pose(position: Array, quaternion: Array) -> pin.SE3:
    """Pose of a frame by MuJoCo's quaternion (w, x, y, z)."""
    return pin.SE3(pin.Quaternion(*map(float, quaternion)).normalized().toRotationMatrix(), np.array(position))


def _connect(joint: etree._Element, parent: str, child: str, pose: pin.SE3) -> None:
    _place(joint, pose)
    etree.SubElement(joint, "parent", link=parent)
    etree.SubElement(joint, "child", link=child)


def _place(element: etree._Element, pose: pin.SE3) -> None:
    rpy = pin.rpy.matrixToRpy(pose.rotation)
    etree.SubElement(element, "origin", xyz=_numbers(pose.translation), rpy=_numbers(rpy))


def _set_inertia(link: etree._Element, inertia: pin.Inertia) -> None:
    link.append(etree.fromstring("".join(inertial_lines(inertia.toDynamicParameters()))))


def _numbers(values: Array | float) -> str:
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))
