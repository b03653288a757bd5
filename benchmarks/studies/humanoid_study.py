"""Two arms of a humanoid on its feet.

Motions one after the other, each planned with the information of earlier motions ([Ayusawa2017]_ sec. IV).
"""

from dataclasses import dataclass

import attrs
import numpy as np
import pinocchio as pin
from lxml import etree
from studies.humanoid import ARMS, TALOS, humanoid, limits_of

from inertid_ros.config.excitation import AreaOptions, BalanceOptions, CollisionOptions, ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.balance import CentreOfMassConstraint, polygon
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.descent import Candidate, finish_plan, improve_shape
from inertid_ros.excitation.planning.measurement_regressor import MeasurementRegressor
from inertid_ros.excitation.planning.planner import random_shape, random_shapes
from inertid_ros.excitation.planning.planning_problem import PlanningProblem
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.example_robots import example_urdf

SRDF = "talos_data/srdf/talos.srdf"
GROUND, ROOM, SIDES = -1.08, 0.01, 16  # m; [Ayusawa2017]_ keeps the centre of mass within 1 cm
SECONDS, INSTANTS, CHECKED, STEP = 8.0, 40, 400, 0.2
CLEARANCE = 0.01


@dataclass(frozen=True)
class Study:
    """The robot, its constraints, and the evaluation of its motions."""

    model: RobotModel
    limits: MotionLimits
    start: Array
    options: ExcitationOptions

    @classmethod
    def of(cls, iterations: int) -> "Study":
        """TALOS on straight legs, arms free, from the arms' pose in its SRDF."""
        model = humanoid(ARMS.fullmatch)
        limits = limits_of(model)
        folder = example_urdf(TALOS).parents[2]
        srdf = folder / SRDF
        states = etree.parse(str(srdf)).getroot().findall("group_state[@name='half_sitting']/joint")
        pose = {state.get("name"): state.get("value") for state in states}
        start = np.array([float(pose[name]) for name in model.joint_names])
        wide = polygon(AreaOptions((-9, 9, 9, -9), (-9, -9, 9, 9)), "everywhere")
        x, y = CentreOfMassConstraint(model, wide, GROUND).below(start[None])[0]
        angles = 2 * np.pi * np.arange(SIDES) / SIDES
        region = AreaOptions(tuple(x + ROOM * np.cos(angles)), tuple(y + ROOM * np.sin(angles)))
        options = ExcitationOptions(
            duration_s=SECONDS,
            base_frequency_hz=1 / SECONDS,
            harmonics=10,
            criterion_samples=INSTANTS,
            constraint_samples=CHECKED,
            starts=8,
            improved=1,
            iterations=iterations,
            time_limit_s=1e5,
            mounting="none",
            collision=CollisionOptions(
                mesh_folders=(str(folder.parent.parent),), srdf=str(srdf), clearance_m=CLEARANCE
            ),
            balance=BalanceOptions(com_region=region, ground_m=GROUND),
        )
        return cls(model, limits, start, options)

    @property
    def weights(self) -> Array:
        """Torque weights ``(n,)``: none, as in [Ayusawa2017]_."""
        return np.ones(self.model.joints)

    def known(self, plans: list[Plan]) -> EarlierInformation:
        """Information of several motions: their stacked regressors ([Ayusawa2017]_ eq. 41)."""
        return EarlierInformation(self.rows(plans), self.weights)

    def rows(self, plans: list[Plan]) -> Array:
        """Regressors at the instants of the criterion ``(m, p)``."""
        measured = MeasurementRegressor(self.model, self.weights, np.zeros(0))
        every = np.arange(len(measured.columns))
        instants = (np.arange(INSTANTS) + 0.5) * STEP
        found = [MotionSamples(measured.chain, *plan.sample(instants), STEP) for plan in plans]
        rows = [measured.regressor(motion, every).reshape(-1, len(every)) for motion in found]
        return np.sqrt(STEP) * np.concatenate([np.zeros((0, len(every))), *rows])

    def problem(self, plans: list[Plan], seed: int = 0) -> PlanningProblem:
        """Planning problem of a motion after earlier motions."""
        options = attrs.evolve(self.options, seed=seed)
        return PlanningProblem(self.model, self.limits, self.start, options, self.known(plans))

    def optimised(self, earlier: list[Candidate], seed: int) -> Candidate:
        """Plan the next motion: the better of two descents, from a random motion and from the last earlier motion.

        As a motion repeated keeps the condition number, the second descent hardly raises it.
        """
        candidates = []
        for start in (None, *(candidate.shape for candidate in earlier[-1:])):
            problem = self.problem([candidate.plan for candidate in earlier], seed)  # a descent adapts its penalties
            shape = random_shapes(problem, problem.options)[0] if start is None else start
            candidates.append(finish_plan(problem, improve_shape(problem, shape)))
        return min(candidates, key=lambda candidate: candidate.value)

    def chance(self, count: int) -> list[Plan]:
        """Random motions, each as large as the constraints allow."""
        problem, rng = self.problem([]), np.random.default_rng(1)
        shapes = (random_shape(problem.basis, problem.start, problem.planning_limits, rng) for _ in range(count))
        return [finish_plan(problem, problem.initial_shape(shape)).plan for shape in shapes]

    def condition(self, plans: list[Plan], columns: Array, scaled: bool = True) -> float:
        """Condition number of the stacked base regressors of motions."""
        rows = self.rows(plans)[:, columns]
        values = np.linalg.svd(rows / np.linalg.norm(rows, axis=0) if scaled else rows, compute_uv=False)
        return float(values[0] / values[-1])

    def selected(self, pool: list[Plan], columns: Array) -> list[Plan]:
        """The best motion of a pool, then the best motion together with it, then the best motion with both."""
        chosen: list[Plan] = []
        for _ in range(3):
            rest = [plan for plan in pool if all(plan is not other for other in chosen)]
            chosen.append(min(rest, key=lambda plan: self.condition([*chosen, plan], columns)))
        return chosen


def violations(study: Study, plan: Plan, rate: float = 1000.0) -> dict[str, float]:
    """Violations at 1 kHz, by Pinocchio and Coal from the URDF, meshes and SRDF alone."""
    file, options = str(example_urdf(TALOS)), study.options.collision
    robot = pin.buildModelFromUrdf(file, pin.JointModelFreeFlyer())
    geometry = pin.buildGeomFromUrdf(robot, file, pin.GeometryType.COLLISION, package_dirs=list(options.mesh_folders))
    geometry.addAllCollisionPairs()
    pin.removeCollisionPairs(robot, geometry, options.srdf, False)
    data = robot.createData()
    rest = pin.neutral(robot)
    for name, position in study.model.options.locked_joints.items():
        rest[robot.joints[robot.getJointId(name)].idx_q] = position
    index = [robot.joints[robot.getJointId(name)].idx_q for name in study.model.joint_names]
    at = [robot.joints[robot.getJointId(name)].idx_v for name in study.model.joint_names]
    _keep_moving(robot, geometry, set(study.model.joint_names))
    geometry_data = pin.GeometryData(geometry)
    for request in geometry_data.collisionRequests:
        request.security_margin = CLEARANCE - 1e-4
    time = np.arange(0.0, plan.duration, 1 / rate)
    q, v, a = plan.sample(time)
    limits, start = study.limits, pin.centerOfMass(robot, data, _posed(rest, index, study.start))
    found = {
        "position": float(np.maximum(limits.lower - q, q - limits.upper).max()),
        "velocity": float((np.abs(v) - limits.velocity).max()),
        "acceleration": float((np.abs(a) - limits.acceleration).max()),
    }
    collisions, away, effort = 0, 0.0, -np.inf
    for row in range(len(time)):
        pose = _posed(rest, index, q[row])
        collisions += bool(pin.computeCollisions(robot, data, geometry, geometry_data, pose, True))
        away = max(away, float(np.linalg.norm((pin.centerOfMass(robot, data, pose) - start)[:2])))
        rates = np.zeros((2, robot.nv))
        rates[:, at] = v[row], a[row]
        effort = max(effort, float((np.abs(pin.rnea(robot, data, pose, *rates)[at]) / limits.effort).max()))
    return {**found, "collisions": collisions, "centre of mass": away, "effort": effort}


def _posed(rest: Array, index: list[int], q: Array) -> Array:
    pose = rest.copy()
    pose[index] = q
    return pose


def _keep_moving(robot: pin.Model, geometry: pin.GeometryModel, moving: set[str]) -> None:
    """Drop pairs that do not move against each other, and neighbours at a joint."""
    joints = [body.parentJoint for body in geometry.geometryObjects]

    def group(joint: int) -> int:
        while joint > 1 and robot.names[joint] not in moving:
            joint = robot.parents[joint]
        return joint

    for pair in list(geometry.collisionPairs):
        first, second = joints[pair.first], joints[pair.second]
        near = second in (first, robot.parents[first]) or first == robot.parents[second]
        if near or group(first) == group(second):
            geometry.removeCollisionPair(pair)
