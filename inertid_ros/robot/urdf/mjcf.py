"""URDF text of a robot in an MJCF file, which MuJoCo compiles in another process.

MuJoCo resolves defaults, includes, and inertia from shapes. A body becomes a link with the frame of its last joint;
a body with several joints gets links without mass between them. Joints keep their names.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array, Indices
from inertid_ros.core.errors import ModelError, first_few, log_once, optional_module
from inertid_ros.core.worker import read_apart

from .parsing import DRAKE
from .text import add_inertia, add_joint, add_shape, add_transmission, numbers

_ABSENT = "this needs MuJoCo, which is not installed; pip install mujoco"
_ALLOWED_BYTES = 2 * 10**8  # of the files that an MJCF names
_ASSUMED_M = 10.0  # range of a sliding joint without one, in both directions; Pinocchio needs a range
# A link between two joints of a body; for a link without mass, a body would be guessed.
_MASSLESS = pin.Inertia(1e-12, np.zeros(3), 1e-14 * np.eye(3)).toDynamicParameters()
_SHAPES = {"mjGEOM_SPHERE": ("sphere", ("radius",)), "mjGEOM_CAPSULE": ("capsule", ("radius", "length")),
    "mjGEOM_CYLINDER": ("cylinder", ("radius", "length")),
    **dict.fromkeys(("mjGEOM_BOX", "mjGEOM_ELLIPSOID"), ("box", ("size",)))}  # a box around an ellipsoid


def import_mujoco() -> Any:
    """The ``mujoco`` module; ModelError without MuJoCo."""
    return optional_module("mujoco", ModelError(_ABSENT))


@contextmanager
def refusals(where: object = "URDF") -> Iterator[None]:
    """Raise ModelError if MuJoCo refuses a model; ``where`` names it."""
    try:
        yield
    except (ValueError, RuntimeError, KeyError) as error:
        raise ModelError(f"{where}: MuJoCo refuses it ({str(error).splitlines()[0]}); fix it") from None


def as_urdf(path: Path, root: etree._Element) -> str:
    """URDF text of an MJCF file; one line is logged about every kind of content that is lost.

    Rotor inertias (``armature``) are written as Drake's elements of transmissions. ModelError: MuJoCo is not installed,
    or refuses the file; WorkerError: reading takes too long, or ends the process.
    """
    text, lost = read_apart(str(path), _converted, str(path), size=_ALLOWED_BYTES)
    for line in lost:
        log_once(f"{path.name}: {line}")
    return text


def _converted(path: str, progress: object) -> tuple[str, list[str]]:
    mujoco = optional_module("mujoco", ModelError(f"{path}: {_ABSENT}"))
    with refusals(path):
        robot = _Robot(mujoco, mujoco.MjSpec.from_file(path), Path(path).parent)
    return robot.urdf(), robot.lost


class _Robot:
    """URDF of a model, and lines about its content that is lost."""

    def __init__(self, mujoco: Any, given: Any, folder: Path) -> None:
        self.model = model = given.compile()
        self.given, self.folder, self.types = given, folder, mujoco
        self.lost, self.unshaped = list[str](), list[str]()  # lines; shapes that a URDF cannot have
        self.slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        self.moves = self.slides | (model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)
        self.feedback = model.actuator_biastype != mujoco.mjtBias.mjBIAS_NONE  # as of position actuators
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
        floating = {int(body) for body in model.jnt_bodyid[model.jnt_type == self.types.mjtJoint.mjJNT_FREE]}
        alone = len(floating) == 1 and set(model.body_rootid[model.jnt_bodyid]) == floating
        names = first_few([self.links[body] for body in floating])
        if floating:
            self.lost.append(f"body '{names}' moves freely; its base is fixed unless robot.base is free" if alone
                else f"loose objects are left out: {names}")
        return [k for k in range(model.nbody) if (model.body_rootid[k] in floating) == alone]

    def urdf(self) -> str:
        """URDF text; :attr:`lost` is complete afterwards."""
        for body in self.bodies:
            self._add_link(body)
        self._add_mimics()
        self._tell_losses()
        return str(etree.tostring(self.root, encoding="unicode", pretty_print=True))

    def _add_link(self, body: int) -> None:
        """Add a body with its shapes, behind its joints."""
        model, links = self.model, self.links
        joints = [k for k in self.kept if model.jnt_bodyid[k] == body]
        start, above = _pose(model.body_pos[body], model.body_quat[body]), links[model.body_parentid[body]]
        start.translation -= self.offsets[model.body_parentid[body]]
        for joint in joints:
            child = links[body] if joint == joints[-1] else f"{self.joints[joint]}_{links[body]}"
            if joint != joints[-1]:
                add_inertia(etree.SubElement(self.root, "link", name=child), _MASSLESS)
            self._add_joint(joint, above, child, start * pin.SE3(np.eye(3), model.jnt_pos[joint]))
            start, above = pin.SE3(np.eye(3), -model.jnt_pos[joint]), child
        if joints:
            self.offsets[body] = model.jnt_pos[joints[-1]]
        elif body != self.bodies[0]:
            add_joint(self.root, (f"{links[body]}_fixed", above, links[body]), "fixed", start)
        link = etree.SubElement(self.root, "link", name=links[body])
        pose = _pose(model.body_ipos[body] - self.offsets[body], model.body_iquat[body])
        if model.body_mass[body] > 0:
            inertia = pose.rotation @ np.diag(model.body_inertia[body]) @ pose.rotation.T
            whole = pin.Inertia(float(model.body_mass[body]), pose.translation, inertia)
            add_inertia(link, whole.toDynamicParameters())
        for shape in np.flatnonzero(model.geom_bodyid == body):
            if model.geom_contype[shape] or model.geom_conaffinity[shape]:
                self._add_collision(link, int(shape), body)

    def _add_joint(self, joint: int, parent: str, child: str, start: pin.SE3) -> None:
        """Add a joint, whose frame is at its ``start`` for the position ``ref``."""
        model, axis = self.model, self.model.jnt_axis[joint]
        zero, dof = -float(model.qpos0[model.jnt_qposadr[joint]]), int(model.jnt_dofadr[joint])
        back = pin.SE3(np.eye(3), zero * axis) if self.slides[joint] else pin.SE3(pin.exp3(zero * axis), np.zeros(3))
        kind = "prismatic" if self.slides[joint] else "revolute" if model.jnt_limited[joint] else "continuous"
        lower, upper = model.jnt_range[joint] if model.jnt_limited[joint] else (-_ASSUMED_M, _ASSUMED_M)
        limits = {"lower": lower, "upper": upper, "effort": self._largest_effort(joint), "velocity": 0.0}  # not stated
        friction = {"damping": model.dof_damping[dof], "friction": model.dof_frictionloss[dof]}
        add_joint(self.root, (self.joints[joint], parent, child), kind, start * back, axis={"xyz": axis}, limit=limits,
            dynamics=friction)
        of_motors = model.actuator_gear[:, 0] ** 2 * getattr(model, "actuator_armature", 0.0)  # MuJoCo 4
        if (rotor := float(model.dof_armature[dof] + np.sum(of_motors[self._actuators(joint)]))) > 0:
            actuator = add_transmission(self.root, self.joints[joint])
            etree.SubElement(actuator, f"{{{DRAKE}}}rotor_inertia", value=numbers(rotor))

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
        motors = model.actuator_ctrllimited[drives] & ~self.feedback[drives]
        forces = np.where(model.actuator_forcelimited[drives], forces, np.inf)
        forces = np.minimum(forces, np.where(motors, commands, np.inf))
        if len(drives):
            bounds.append(float(np.sum(forces * np.abs(model.actuator_gear[drives, 0]))))
        if model.jnt_actfrclimited[joint]:
            bounds.append(float(np.abs(model.jnt_actfrcrange[joint]).max()))
        return min(filter(np.isfinite, bounds), default=0.0)

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
            tag, attributes = "mesh", {"filename": str(file), "scale": numbers(scale)}
        elif kind.name in _SHAPES:
            tag, keys = _SHAPES[kind.name]
            lengths = {"radius": size[0], "length": 2 * size[1], "size": 2 * size}
            attributes = {key: numbers(lengths[key]) for key in keys}
        else:
            self.unshaped.append(f"a {kind.name.rpartition('_')[2].lower()} of '{self.links[body]}'")
            return
        add_shape(link, pose, tag, attributes)

    def _add_mimics(self) -> None:
        """Write linear equalities of two joints as ``<mimic>``, and tell the other equalities."""
        model, open_loops = self.model, list[str]()
        elements = {str(joint.get("name")): joint for joint in self.root.iterchildren("joint")}
        for index in np.flatnonzero(model.eq_active0):
            follower, leader = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
            offset, multiplier, *others = model.eq_data[index, :5]
            if model.eq_type[index] == self.types.mjtEq.mjEQ_JOINT and leader >= 0 and not np.any(others):
                at = model.qpos0[model.jnt_qposadr[[follower, leader]]]
                values = {"multiplier": numbers(multiplier), "offset": numbers(at[0] + offset - multiplier * at[1])}
                if {follower, leader} <= set(self.kept):
                    etree.SubElement(elements[self.joints[follower]], "mimic", values, joint=self.joints[leader])
                continue
            open_loops.append(model.equality(index).name or f"equality_{index}")
        if open_loops:
            self.lost.append(f"closed loops and other equality constraints are opened: {first_few(open_loops)}")

    def _tell_losses(self) -> None:
        model, kept, types = self.model, np.array(self.kept, dtype=int), self.types
        names, bodies = np.array(self.joints, dtype=object), np.array(self.bodies)
        gains = np.column_stack([model.actuator_gainprm[:, 0], -model.actuator_biasprm[:, 2]])
        gains *= model.actuator_gear[:, :1] ** 2
        drives = [(names[k], on[0]) for k in self.kept if len(on := self._actuators(k)) == 1 and self.feedback[on[0]]]
        kp, kd = (", ".join(f"{name}: {gains[at, i]:.6g}" for name, at in drives) for i in (0, 1))
        every = {
            "shapes are left out; set excitation.floor_m, or add obstacles": first_few(self.unshaped),
            "ball joints are fixed": first_few(
                [*names[np.isin(model.jnt_bodyid, bodies) & (model.jnt_type == types.mjtJoint.mjJNT_BALL)]]),
            "springs of joints are no prior; robot.drive_terms with stiffness identifies them": first_few(
                [*names[kept[model.jnt_stiffness[kept] != 0]]]),
            f"sliding joints without a range get {_ASSUMED_M:g} m; set limits.position": first_few(
                [*names[kept[self.slides[kept] & (model.jnt_limited[kept] == 0)]]]),
            "tendons are left out": first_few([model.tendon(k).name or str(k) for k in range(model.ntendon)]),
            "actuators that do not act on one joint are left out": first_few([
                model.actuator(k).name or str(k) for k in range(model.nu)
                if not any(k in self._actuators(joint) for joint in self.kept)]),
            "gravity is compensated; set robot.effort gravity_compensated if efforts lack it": first_few(
                [self.links[k] for k in bodies[model.body_gravcomp[bodies] != 0]]),
            "further content is left out": first_few([what for what, count in (
                ("deformable bodies", model.nflex), ("plugins", model.nplugin), ("density of air", model.opt.density),
                ("viscosity of air", model.opt.viscosity)) if count]),
            "its gravity is not used; set robot.gravity": str(model.opt.gravity.tolist())
                * bool(np.abs(model.opt.gravity - (0.0, 0.0, -9.81)).max() > 1e-9),
            "gains of position actuators are not used; if commands are recorded in place of efforts, use":
                f"robot.effort: position_command, robot.command_kp: {{{kp}}}, robot.command_kd: {{{kd}}}" * bool(kp)}
        self.lost += [f"{what}: {content}" for what, content in every.items() if content]


def _pose(position: Array, quaternion: Array) -> pin.SE3:
    """Pose of a frame by MuJoCo's quaternion (w, x, y, z)."""
    return pin.SE3(pin.Quaternion(*map(float, quaternion)).normalized().toRotationMatrix(), np.array(position))
