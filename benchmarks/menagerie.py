"""Fixed-base arms of MuJoCo Menagerie, from their MJCF: plan, record in MuJoCo, identify, and predict another motion.

    python benchmarks/menagerie.py --folder MENAGERIE [NAME...] [--record FILE]

``MENAGERIE`` is a checkout of google-deepmind/mujoco_menagerie. MuJoCo simulates the MJCF itself, with its drives;
bodies and drives of the given robot are off by some tens of per cent.
"""

import argparse
import copy
import json
import logging
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import mujoco
import numpy as np
from support.robots.example_robots import all_locked
from tables import PAGES, commit, machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.planning import plan
from inertid_ros.calibration.robot_setup import robot_setup
from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.config.excitation import ExcitationOptions, LimitOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.mujoco_model import MujocoRobot, joint_indices
from inertid_ros.simulation.simulated_robot import Drives, SimulatedRobot, effort_scale, simulate

ARMS = (
    "agilex_piper/piper.xml", "aloha/aloha.xml", "arx_l5/arx_l5.xml", "dynamixel_2r/dynamixel_2r.xml",
    "flexiv_rizon4/flexiv_rizon4.xml", "flexiv_rizon4s/flexiv_rizon4s.xml", "franka_emika_panda/panda.xml",
    "franka_fr3/fr3.xml", "franka_fr3_v2/fr3v2.xml", "i2rt_yam/yam.xml", "kinova_gen3/gen3.xml",
    "kuka_iiwa_14/iiwa14.xml", "low_cost_robot_arm/low_cost_robot_arm.xml", "rethink_robotics_sawyer/sawyer.xml",
    "robotis_omy_3m/omy_3m.xml", "robotstudio_so101/so101.xml", "seeed_rebot_devarm/seeed_rebot_devarm.xml",
    "trossen_vx300s/vx300s.xml", "trossen_wx250s/wx250s.xml", "trossen_wxai/trossen_ai_bimanual.xml",
    "trs_so_arm100/so_arm100.xml", "ufactory_lite6/lite6_gripper_wide.xml", "ufactory_xarm7/xarm7.xml",
    "unitree_z1/z1_gripper.xml", "universal_robots_ur10e/ur10e.xml", "universal_robots_ur5e/ur5e.xml",
)  # fmt: skip
HELD = {"trossen_wxai": dict.fromkeys((f"{arm}/{side}_carriage_joint" for arm in ("left", "right")
    for side in ("left", "right")), 0.022)}  # as the message on their narrow range proposes
IGNORED = {"ufactory_lite6": {"link4": ("link6",)}}  # 7 mm apart in the start pose; as the message proposes
LOCKED = 1e9  # kg m^2 or kg; joints with this armature do not move
OFF = 0.7  # drives of the given robot, relative to those of the MJCF
PLANNING = ExcitationOptions(workers=1, time_limit_s=600.0, duration_s=15.0, starts=2, improved=1, iterations=4,
    criterion_samples=60, constraint_samples=60)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Outcome of one arm; torque errors are relative.

    Attributes
    ----------
    difference : largest difference to MuJoCo's inverse dynamics of the MJCF, relative to the largest torque.
    given, identified, true : errors on the held-out motion with the given, the identified and the true parameters.
    within : masses whose 95 % interval holds the true value, of ``bodies``.
    """

    joints: int
    locked: int
    condition: float
    difference: float
    given: float
    identified: float
    true: float
    within: int
    bodies: int
    verdict: str
    seconds: float


def compiled_arm(path: Path, model: RobotModel) -> MujocoRobot:
    """The MJCF without actuators, contacts and what a robot model does not hold; locked joints cannot move."""
    compiled = mujoco.MjModel.from_xml_path(str(path))
    compiled.opt.timestep = SimulationOptions().timestep_s
    compiled.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    off = mujoco.mjtDisableBit
    compiled.opt.disableflags |= off.mjDSBL_ACTUATION | off.mjDSBL_CONTACT | off.mjDSBL_EQUALITY
    for lost in ("body_gravcomp", "jnt_stiffness", "tendon_stiffness", "tendon_damping", "tendon_frictionloss"):
        getattr(compiled, lost)[:] = 0.0
    dof, position = joint_indices(compiled, model.joint_names)
    compiled.dof_armature[np.setdiff1d(np.arange(compiled.nv), dof)] = LOCKED
    return MujocoRobot(compiled, dof, position)


class Arm(SimulatedRobot):
    """The simulated arm, with its locked joints where the robot model has them."""

    def reset(self, position: Array | None = None) -> None:
        super().reset(position)
        for name, at in all_locked(self.robot).items():
            self._data.joint(name).qpos = at
        mujoco.mj_forward(self._compiled.model, self._data)


def torque_difference(arm: MujocoRobot, model: RobotModel) -> float:
    """Largest difference of inverse dynamics at random states, without dry friction, relative to the largest torque."""
    compiled, states = copy.copy(arm.model), sample_states(model, 20)
    compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, torque = mujoco.MjData(compiled), []
    for name, at in all_locked(model).items():
        data.joint(name).qpos = at
    for q, v, a in zip(states.q, states.v, states.a, strict=True):
        data.qpos[arm.position], data.qvel[arm.dof], data.qacc[arm.dof] = q, v, a
        mujoco.mj_inverse(compiled, data)
        torque.append(data.qfrc_inverse[arm.dof])
    parameters = model.prior
    parameters[model.layout.drive("coulomb")] = 0.0
    expected = ForceEquations(model).predict(parameters, states)
    return float(np.abs(np.array(torque) - expected).max() / np.abs(expected).max())


def outcome(path: Path) -> Outcome:
    """Plan with short searches, record two motions, and calibrate a wrong model with defaults."""
    began = time.perf_counter()
    truth = robot_setup(path, locked_joints=HELD.get(path.parent.name)).model
    missing = np.flatnonzero(np.isinf(truth.limits.effort))
    efforts = {truth.joint_names[joint]: float(effort_scale(truth)[joint]) for joint in missing}
    ignored = IGNORED.get(path.parent.name, {})
    options = attrs.evolve(PLANNING, collision=attrs.evolve(PLANNING.collision, ignored=ignored))
    motions = plan(truth, ExcitationConfiguration(limits=LimitOptions(effort=efforts), excitation=options))
    arm, prior = compiled_arm(path, truth), truth.drive_prior
    difference = torque_difference(arm, truth)
    drives = Drives(prior["rotor_inertia"], prior["viscous"], prior["coulomb"], offset=np.zeros(truth.joints))
    with mock.patch("inertid_ros.simulation.simulated_robot.build_mujoco", return_value=arm):
        robot = Arm(truth, drives=drives, start=motions[0].plan.position[0])
    train, held_out = (simulate(robot, motion.plan) for motion in motions)
    given = truth.with_prior_bodies(perturb(truth, np.random.default_rng(0)))
    given = replace(given, drive_prior={term: OFF * values for term, values in prior.items()})
    done = calibrate(given, [train], [held_out])
    estimate, samples = done.estimate, done.held_out
    true = np.concatenate([robot.bodies.ravel(), *(robot.drives.term(term) for term in estimate.layout.drive_terms)])
    given_error, identified_error, true_error = (torque_errors(estimate.equations, parameters, samples).relative_error
        for parameters in (estimate.prior, estimate.parameters, true))
    masses = [estimate.layout.body(body).start for body in range(len(truth.link_names))]
    low, high = estimate.interval[masses].T
    within = int(np.sum((low <= true[masses]) & (true[masses] <= high)))
    condition, seconds = motions[0].inspection.condition_number, time.perf_counter() - began
    return Outcome(truth.joints, len(all_locked(truth)), condition, difference, given_error, identified_error,
        true_error, within, len(masses), done.gate.verdict.value, seconds)


def recorded(file: Path | None) -> dict[str, dict[str, Any]]:
    """Outcomes of this commit in a file of JSON lines, so that an ended run can continue."""
    lines = file.read_text().splitlines() if file and file.exists() else []
    kept = (json.loads(line) for line in lines)
    return {one["arm"]: one["outcome"] for one in kept if one["commit"] == commit()}


def row(name: str, arm: Outcome | str) -> list[object]:
    if isinstance(arm, str):
        return [name, arm, *[""] * 7]
    held = f", {arm.locked} held" if arm.locked else ""
    return [
        name, f"{arm.joints}{held}", f"{arm.difference:.0e}", f"{arm.condition:.3g}", f"{100 * arm.given:.1f}",
        f"{100 * arm.identified:.2f}", f"{100 * arm.true:.2f}", f"{arm.identified / arm.true:.2f}",
        f"{arm.within} of {arm.bodies}", arm.verdict,
    ]  # fmt: skip


HEADER = ("arm", "joints", "difference of torque", "condition number", "error as given [%]", "identified [%]",
    "true parameters [%]", "ratio to true", "masses in 95 % intervals", "verdict")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="arms, such as franka_fr3 (default: all)")
    parser.add_argument("--folder", type=Path, help="checkout of google-deepmind/mujoco_menagerie")
    parser.add_argument("--record", type=Path, help="file of outcomes, to continue an ended run")
    parser.add_argument("--note", default="", help="sentence on the checkout for the page")
    chosen, _ = parser.parse_known_args()
    if chosen.folder is None or not chosen.folder.is_dir():
        print("skipped: no robots; give --folder with a checkout of google-deepmind/mujoco_menagerie")
        return
    logging.getLogger("inertid_ros").setLevel(logging.ERROR)
    kept, outcomes, absent = recorded(chosen.record), dict[str, Outcome | str](), list[str]()
    for arm in ARMS:
        name = arm.partition("/")[0]
        if chosen.names and name not in chosen.names:
            continue
        if not (chosen.folder / arm).exists():
            absent.append(name)
            continue
        if name not in kept:
            try:
                kept[name] = asdict(outcome(chosen.folder / arm))
            except InertidError as error:
                kept[name] = {"failed": str(error).replace(f"{chosen.folder}/", "")}
            if chosen.record:
                with chosen.record.open("a") as file:
                    print(json.dumps({"commit": commit(), "arm": name, "outcome": kept[name]}), file=file)
        found = kept[name]
        outcomes[name] = found["failed"] if "failed" in found else Outcome(**found)
        print(*row(name, outcomes[name]), sep=", ", flush=True)
    done = [found for found in outcomes.values() if isinstance(found, Outcome)]
    ratios = np.array([found.identified / found.true for found in done])
    text = (
        f"## Arms of MuJoCo Menagerie\n\n`benchmarks/menagerie.py`: {len(outcomes)} fixed-base arms, loaded from their"
        " MJCF. `inertid init` chooses the joints to hold, a motion of 15 s and one to hold out are planned with short"
        " searches (effort limits that an MJCF lacks are 1.5 times the largest torque of gravity), and MuJoCo"
        " simulates the MJCF itself, with its armature, damping and frictionloss, sensor noise and play. The given"
        " robot has bodies with up to 40 % other masses, and 0.7 of the drives. Difference of torque: between MuJoCo's"
        " inverse dynamics of the MJCF and the model, at random states, relative to the largest torque. Errors are of"
        " the predicted torque of the held-out motion; those of the true parameters are the noise floor. Ratio to this"
        f" floor: median {np.median(ratios):.2f}, largest {ratios.max():.2f}. Masses in their 95 % intervals:"
        f" {sum(found.within for found in done)} of {sum(found.bodies for found in done)}."
        f"{' ' * bool(chosen.note)}{chosen.note}\n\n"
        + table(HEADER, [row(name, arm) for name, arm in outcomes.items()])
        + (f"\n\nNot in this checkout: {', '.join(absent)}." if absent else "")
    )
    if chosen.names:
        print(text)
    else:
        publish("menagerie", f"{text}\n\n{machine()}", PAGES / "published_robots.md")


if __name__ == "__main__":
    main()
