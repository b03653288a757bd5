"""Hypotheses on errors of efforts or of the motion recorded with them, and the cost of each hypothesis."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, compress, product
from typing import Any, NamedTuple

import numpy as np
import scipy

from inertid_ros.config.robot import TERM_SHAPES
from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.findings import Severity, remedy_for
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.regressors.drives import DriveMotion
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import RobotModel

from .effort_equations import EFFORT_TERMS, URDF_SPREAD, EffortEquations, EffortFit


class _Kind(NamedTuple):
    """Evidence of a cause (a template), the number of parameters that are fitted to it, and its gravest severity."""

    evidence: str
    parameters: int = 0
    gravest: Severity = Severity.REFUSE


_KINDS = {
    "effort_sign": _Kind("effort of {joint} has the opposite sign of the URDF's torque"),
    "effort_magnitude": _Kind("efforts of {joints} have one sign throughout, unlike the URDF's torques"),
    "joint_axis": _Kind("{what} an axis that points the other way"),
    "absolute_angle": _Kind("position of {other} fits its angle {plus} the angle of {one}"),
    "effort_exchange": _Kind("efforts of {one} fit the motion of {other}{mutual}"),
    "effort_unit": _Kind("efforts are {power:g} times the torques that the URDF predicts (they look like {unit})"),
    "effort_current": _Kind("efforts are {times} times the torques that the URDF predicts{comment}"),
    "gravity_compensated": _Kind("efforts lack the torque of gravity"),
    "gravity_not_compensated": _Kind("efforts contain the torque of gravity"),
    "gravity_direction": _Kind("efforts fit a gravity of {vector} in the root frame"),
    "delay": _Kind("efforts are stamped about {milliseconds:.0f} ms {order} the motion", 1),
    "coupling": _Kind("efforts of {one} and {other} follow the {speeds} of their speeds", 3, Severity.REJECT),
    "undeclared_load": _Kind("{link} carries about {mass:.2g} kg more than in the URDF", 4, Severity.NOTICE),
    "counterbalance": _Kind(
        "a torque that depends on the position of {joint} acts in addition to the URDF's bodies", 0, Severity.REJECT),
    "joint_exchange": _Kind("positions and efforts of {one} fit {other} of the URDF{mutual}"),
    "position_offset": _Kind("torque of gravity on {joint} fits positions shifted by {shift} degrees"),
    "position_unit": _Kind("efforts fit positions in degrees"),
}
_ZERO_TURNS_DEG = (90, -90, 180, 45, -45, 135, -135, 20, -20, 67, -67, 112, -112, 157, -157)  # usual ones, and between
_TURN_STEP_DEG = 15.0  # to any other turn from the nearest of these
_LAGS_S = (0.05, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5)  # shorter lags are estimated with the parameters
_SHORTLIST_COUNT = 5  # hypotheses fitted among many similar ones: the best with the URDF's bodies
_LONG_SHORTLIST_COUNT = 12  # for hypotheses that differ only with fitted bodies; enough for all of an arm
_COST_PER_PARAMETER = 1.5  # half the logarithm of the independent samples, as in the Bayesian information criterion
_MAX_LOAD_DISTANCE_M = 1.0  # from the joint that carries it
_LOAD_RADIUS_RATIO = 0.3  # radius of a load (a ball) over the distance of its centre; the fit corrects its inertia
_MAX_TILT_COSINE = np.cos(np.radians(5.0))  # a smaller tilt changes torques by less than bodies of a URDF do
_MIN_GRAVITY_SHARE = 0.3  # estimated over true gravity; a smaller estimate does not determine the direction
_BALANCED_WEIGHT_SHARE = 0.4  # share of the largest weight on any joint; springs and counterweights carry heavy loads
_UNITS = {1e3: "N mm or mN m", 1e-3: "kN m"}  # units of torque, by the factor of their values
_MOMENT_PARAMETERS = 4  # mass and first moment, the first parameters of a body
_SIGN_ROUNDS = 3  # number of fits, each with the signs of the fit before
_RARER = 3  # axes that only positions contradict, over axes that efforts contradict, too
_ONE_SIGN_SHARE = 0.02  # share of a joint's largest effort; noise of magnitudes near zero
_UNIT_LOG_SPREAD = np.log(2.0)  # factors of joints this close to a power of ten mean a unit, not currents
_NOTICE_FACTOR, _CARE_FACTOR = 2.0, 3.0  # factors of efforts that wrong masses of the URDF do, or may, explain


@dataclass(frozen=True)
class Hypothesis:
    """A cause, as in a finding, of efforts that do not fit the motion; and the corrected equations and efforts.

    Attributes
    ----------
    equations : equations of the correct motion, with the loads, couplings and user terms that the given robot lacks.
    mixing : (n, n), from recorded to correct efforts.
    lag : delay of the reported efforts after the motion [s].
    signs : (N, n), signs of efforts that were recorded as magnitudes; None for efforts with signs.
    gravest : gravest severity of a finding: a coupling, gain or load does not make a recording worthless.
    joints : affected joints; empty: all.
    link : link with a load that the URDF lacks; empty without a load.
    penalty : cost of the parameters that were fitted for the hypothesis, and of the number of similar hypotheses
        tried.
    """

    cause: str
    evidence: str
    remedy: str
    equations: EffortEquations
    mixing: Array
    lag: float = 0.0
    signs: Array | None = None
    gravest: Severity = Severity.REFUSE
    joints: tuple[int, ...] = ()
    link: str = ""
    penalty: float = 0.0

    @classmethod
    def as_recorded(cls, model: RobotModel, motion: DriveMotion) -> "Hypothesis":
        robot = model.with_layout(drive_terms=EFFORT_TERMS)
        gravity = np.zeros(3) if model.layout.compensation else np.array(model.options.gravity, dtype=float)
        return cls("", "", "", EffortEquations(robot, motion, gravity), np.eye(model.joints))


@dataclass(frozen=True)
class EffortComparison:
    """Costs of hypotheses on one recording of a robot on a fixed base.

    Attributes
    ----------
    recorded : reference of the comparison: all data as recorded, or with the causes found so far corrected.
    efforts_after : function from a lag [s] to the efforts ``(N, n)`` reported later by this lag [N m or N].
    counted : bool (n,), joints that report efforts.
    """

    recorded: Hypothesis
    efforts_after: Callable[[float], Array]
    counted: Mask

    @property
    def robot(self) -> RobotModel:
        """Robot as given, with the additions of the causes found so far."""
        return self.recorded.equations.robot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.robot.joint_names

    def corrected(self, hypothesis: Hypothesis) -> "EffortComparison":
        """Comparison of further causes after correction of one cause."""
        return replace(self, recorded=replace(hypothesis, joints=(), link="", penalty=0.0))

    @property
    def joints(self) -> Indices:
        """Indices of the counted joints."""
        return np.flatnonzero(self.counted)

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """Least and largest weight ``(n,)`` of the URDF's bodies on each joint (5th and 95th percentile)."""
        least, most = np.percentile(np.abs(self.recorded.equations.weight_of_urdf), (5, 95), axis=0)
        return least, most

    @property
    def sizes(self) -> Array:
        """Largest effort ``(n,)`` of each joint (95th percentile)."""
        return np.asarray(np.percentile(np.abs(self._efforts), 95, axis=0))

    def fit(self, hypothesis: Hypothesis, spread: float = URDF_SPREAD) -> EffortFit:
        """Best fit under a hypothesis; its cost includes the penalty."""
        fit = hypothesis.equations.fit(self._efforts_under(hypothesis), self.counted, spread)
        return replace(fit, cost=fit.cost + hypothesis.penalty)

    def hypotheses(self, joints: list[int]) -> Iterator[Hypothesis]:
        """Yield all hypotheses; hypotheses on single joints are limited to ``joints``."""
        # Errors of a gravity compensation look like loads, and like springs and weights.
        compensated = self.robot.layout.compensation
        if not compensated:
            yield from self._best(self._loads(), _LONG_SHORTLIST_COUNT)
        yield from self._signs(joints)
        yield from self._magnitudes()
        yield from self._best(self._turned_axes(), _LONG_SHORTLIST_COUNT)
        yield from self._best(self._absolute_angles(joints))
        yield from self._best(self._effort_exchanges(joints))
        yield from self._factors()
        yield from self._gravities()
        yield from self._delays()
        yield from self._best(self._couplings(joints), _LONG_SHORTLIST_COUNT)
        if not compensated:
            yield from self._counterbalances(joints)
        motions = [*self._joint_exchanges(joints), *self._position_offsets(joints), *self._position_units()]
        yield from (best := self._best(motions))
        yield from self._estimated_offset(best)

    def _signs(self, joints: list[int]) -> Iterator[Hypothesis]:
        words = {"joint": "all joints", "scales": _mapping(dict.fromkeys(compress(self.names, self.counted), -1.0))}
        yield self._other("effort_sign", words, mixing=-self.recorded.mixing)
        yield from self._best(self._sign(joint) for joint in joints)

    def _sign(self, joint: int) -> Hypothesis:
        words = {"joint": self.names[joint], "scales": _mapping({self.names[joint]: -1.0})}
        mixing = self._reversal(joint) @ self.recorded.mixing
        return self._other("effort_sign", words, len(self.names), mixing=mixing, joints=(joint,))

    def _magnitudes(self) -> Iterator[Hypothesis]:
        """Hypothesis that efforts are magnitudes; the torques of the URDF and of friction give their signs."""
        efforts, torque = self._efforts, self.recorded.equations.torque_of_urdf
        one_sign = efforts.min(axis=0) > -_ONE_SIGN_SHARE * efforts.max(axis=0)
        both = np.minimum(torque.max(axis=0), -torque.min(axis=0)) > _ONE_SIGN_SHARE * np.abs(torque).max(axis=0)
        unsigned = self.counted & one_sign
        several = np.count_nonzero(unsigned & (torque.min(axis=0) < -_ONE_SIGN_SHARE * np.abs(torque).max(axis=0))) > 1
        if not (several or (unsigned & both).any()) or self.recorded.signs is not None:
            return
        signs = np.where(unsigned, np.sign(torque), 1.0)
        for _ in range(_SIGN_ROUNDS):
            fit = self.fit(replace(self.recorded, signs=signs))
            signs = np.where(unsigned, np.sign(self.recorded.equations.torque(fit.parameters)), 1.0)
        words = {"joints": ", ".join(compress(self.names, unsigned))}
        some = () if (unsigned == self.counted).all() else tuple(np.flatnonzero(unsigned).tolist())
        yield self._other("effort_magnitude", words, signs=signs, joints=some)

    def _turned_axes(self) -> Iterator[Hypothesis]:
        """Hypotheses that an axis points the other way in the URDF: position, or also effort, has the opposite sign."""
        coupled = {joint for coupling in self.robot.layout.couplings for joint in coupling.joints}
        for joint in self.joints.tolist():
            if self.names[joint] not in coupled:
                name, change = self.names[joint], self._both(self._reversal(joint))
                words = {"joint": name, "what": f"position and effort of {name} fit"}
                yield self._other("joint_axis", words, len(self.names), joints=(joint,), **change)
                words["what"] = f"position of {name} fits"
                yield self._other("joint_axis", words, _RARER * len(self.names), case="position", joints=(joint,),
                    motion=change["motion"])

    def _absolute_angles(self, joints: list[int]) -> Iterator[Hypothesis]:
        """Hypotheses that a position contains the previous joint's angle, as with parallel linkages, coupled wrists."""
        parents = ((before, joint) for joint, before in enumerate(self.robot.joint_parents) if before >= 0)
        pairs = [pair for pair in parents if self._turns[list(pair)].all() and set(pair) & set(joints)]
        for (one, other), (ratio, plus, minus) in product(pairs, ((1.0, "+", "-"), (-1.0, "-", "+"))):
            change = np.eye(len(self.names))
            change[other, one] = -ratio
            words = {**self._pair((one, other)), "plus": plus, "minus": minus}
            efforts = np.linalg.inv(change).T @ self.recorded.mixing  # of drives, with equal power
            for case, mixing in (("", efforts), ("position", self.recorded.mixing)):
                yield self._other("absolute_angle", words, 4 * len(pairs), case=case, joints=(one, other),
                    motion=self._moved(change), mixing=mixing)

    def _effort_exchanges(self, joints: list[int]) -> Iterator[Hypothesis]:
        pairs = list(combinations(joints, 2))
        for pair in pairs:
            mixing = self._exchange(*pair) @ self.recorded.mixing
            yield self._other("effort_exchange", self._pair(pair), len(pairs), mixing=mixing, joints=pair)
        for change, words in self._orders():
            mixing = change @ self.recorded.mixing
            yield self._other("effort_exchange", words, len(self.names), case="order", mixing=mixing)

    def _orders(self) -> Iterator[tuple[Array, dict[str, str]]]:
        """Matrices ``(n, n)`` from values in another order than their names, as usual mistakes make, and words."""
        right = np.arange(len(self.names))
        sort = np.argsort(self.names)
        for order in np.unique([np.roll(right, 1), np.roll(right, -1), right[::-1], sort, np.argsort(sort)], axis=0):
            if (order != right).sum() > 2:  # else it is an exchange of two
                names = ", ".join(self.names[index] for index in np.argsort(order))
                yield np.eye(len(order))[order], {"one": ", ".join(self.names), "other": names, "mutual": ""}

    def _factors(self) -> Iterator[Hypothesis]:
        """Hypotheses of another unit, motor currents or gains: a factor for each joint whose effort determines it."""
        equations, factor = self.recorded.equations, np.ones(len(self.names))
        rigid = equations.rigid(equations.urdf)
        for _ in range(3):
            ratio, determined = equations.ratios(rigid, self._efforts / factor, self.counted)
            if not determined.any():
                return
            ratio = np.abs(ratio)  # signs are other causes
            common = np.exp(np.mean(np.log(ratio[determined])))
            factor = factor * np.where(determined, ratio, common)
            mixing = np.diag(1 / factor) @ self.recorded.mixing
            rigid = equations.rigid(self.fit(replace(self.recorded, mixing=mixing)).parameters)
        known, names, recorded = factor[determined], list(compress(self.names, self.counted)), self.recorded.mixing
        power = 10.0 ** round(np.log10(float(np.median(known))))
        alike = np.mean(np.abs(np.log(known / power)) < _UNIT_LOG_SPREAD) > 0.75
        unit = {"power": power, "unit": _UNITS.get(power), "scales": _mapping(dict.fromkeys(names, 1 / power))}
        if power in _UNITS and alike:
            yield self._other("effort_unit", unit, parameters=len(known), mixing=mixing)
        else:
            largest, words = float(np.exp(np.max(np.abs(np.log(known))))), {"comment": ""}
            gravest = Severity.CARE if largest > _NOTICE_FACTOR else Severity.NOTICE
            words["times"], case = ", ".join(f"{x:.3g}" for x in known), ""
            if len(names) == len(known):
                words["scales"], case = _mapping(dict(zip(names, 1 / known, strict=True))), "estimated"
            yield self._other("effort_current", words, parameters=len(known), case=case, mixing=mixing,
                gravest=Severity.REFUSE if largest >= _CARE_FACTOR else gravest)
        if power in _UNITS:
            yield self._other("effort_unit", unit, parameters=1, mixing=recorded / power)
        elif power != 1.0:
            words = {"times": f"about {power:g}", "comment": ", which is not a torque unit", "scales": f"{1 / power:g}"}
            yield self._other("effort_current", words, parameters=1, case="estimated", mixing=recorded / power)

    def _gravities(self) -> Iterator[Hypothesis]:
        """Hypotheses that efforts lack gravity, or that gravity has another direction, along an axis or any other."""
        recorded = self.recorded.equations
        given = np.array(self.robot.options.gravity, dtype=float)
        size = float(np.linalg.norm(recorded.gravity))
        if not size and given.any():
            yield self._other("gravity_not_compensated", gravity=given)
        if not size:
            return
        yield self._other("gravity_compensated", gravity=np.zeros(3))
        axes = [size * sign * axis for axis in np.eye(3) for sign in (1, -1)]
        others = [axis for axis in axes if not np.allclose(axis, recorded.gravity, atol=0.1 * size)]
        candidates = [(gravity, len(axes), 0) for gravity in others]
        under = (replace(recorded, gravity=axis) for axis in np.vstack([np.zeros(3), np.eye(3)]))
        still, *units = (equations.rigid(equations.urdf) for equations in under)
        columns = np.stack([unit - still for unit in units], axis=2)
        fitted = recorded.explained(columns, still, self._efforts, self.counted)
        length = float(np.linalg.norm(fitted))
        if length > _MIN_GRAVITY_SHARE * size and fitted @ recorded.gravity < _MAX_TILT_COSINE * length * size:
            candidates.append((size * fitted / length, 1, 2))
        for gravity, tried, parameters in candidates:
            vector = "[" + ", ".join(f"{round(x, 2) + 0.0:g}" for x in gravity.tolist()) + "]"
            yield self._other("gravity_direction", {"vector": vector}, tried, parameters, gravity=gravity)

    def _delays(self) -> Iterator[Hypothesis]:
        for lag in (*_LAGS_S, *(-lag for lag in _LAGS_S)):
            words = {"milliseconds": abs(1e3 * lag), "order": "after" if lag > 0 else "before"}
            yield self._other("delay", words, lag=lag)

    def _couplings(self, joints: list[int]) -> Iterator[Hypothesis]:
        motion = self.recorded.equations.motion
        for joint, before in enumerate(self.robot.joint_parents):
            if before < 0 or not {joint, before} & set(joints):
                continue
            pair = (self.names[before], self.names[joint])
            if any(set(other.joints) >= set(pair) for other in self.robot.layout.couplings):
                continue
            for ratio, speeds in ((1.0, "sum"), (-1.0, "difference")):
                drive = f"{{wrist: {{joints: [{', '.join(pair)}], ratios: [1, {ratio:g}]}}}}"
                sliding = np.sign(motion.v[:, before] + ratio * motion.v[:, joint])
                yield self._other("coupling", {**self._pair((before, joint)), "speeds": speeds, "drive": drive},
                    2 * len(joints), robot=self._robot_with(couplings=[Coupling("coupling", pair, (1.0, ratio))]),
                    motion=motion._replace(direction=np.column_stack([motion.direction, sliding])),
                    joints=(before, joint))

    def _loads(self) -> Iterator[Hypothesis]:
        """Hypotheses that a link at an end of the robot carries a load that the URDF lacks, such as a gripper."""
        robot, equations = self.robot, self.recorded.equations
        ends, bodies = robot.end_bodies, robot.consistent_body_prior
        for end in ends:
            moments = np.swapaxes(equations.regressor[:, :, end, :_MOMENT_PARAMETERS], 0, 1)
            known = equations.torque_of_urdf
            mass, *moment = equations.explained(moments, known, self._efforts, self.counted)
            centre = np.array(moment) / max(mass, 1e-9)
            # A load heavier than the whole robot means another fault.
            if 0 < mass < bodies[:, 0].sum() and np.linalg.norm(centre) < _MAX_LOAD_DISTANCE_M:
                radius = _LOAD_RADIUS_RATIO * float(np.linalg.norm(centre))
                loaded, link = bodies.copy(), robot.link_names[end]
                loaded[end] += from_mass_com_inertia(mass, centre, 0.4 * mass * radius**2 * np.eye(3))
                words, loaded_robot = {"link": link, "mass": mass}, robot.with_prior_bodies(loaded)
                yield self._other("undeclared_load", words, len(ends), link=link, robot=loaded_robot)

    def _counterbalances(self, joints: list[int]) -> Iterator[Hypothesis]:
        """Hypotheses that a spring or a weight that the URDF lacks carries the load of a joint."""
        balanced = {term.joint for term in self.robot.layout.terms}
        heavy = self.weights[1] > _BALANCED_WEIGHT_SHARE * self.weights[1].max()
        loaded = [joint for joint in joints if heavy[joint] and self.names[joint] not in balanced]
        for joint in loaded:
            shape = "counterbalance" if self._turns[joint] else "polynomial"
            formulas = TERM_SHAPES[shape][0]
            words = {"joint": self.names[joint], "shape": shape}
            robot = self._robot_with(terms=[UserTerm("counterbalance", self.names[joint], formulas)])
            yield self._other("counterbalance", words, len(loaded), len(formulas), joints=(joint,), robot=robot)

    def _joint_exchanges(self, joints: list[int]) -> Iterator[Hypothesis]:
        pairs = [pair for pair in combinations(range(len(self.names)), 2) if set(pair) & set(joints)]
        for pair in pairs:
            change = self._both(self._exchange(*pair))
            yield self._other("joint_exchange", self._pair(pair), len(pairs), joints=pair, **change)
        for order, words in self._orders():
            yield self._other("joint_exchange", words, len(self.names), case="order", **self._both(order))

    def _position_offsets(self, joints: list[int]) -> Iterator[Hypothesis]:
        tree = self.robot.tree
        for joint in np.flatnonzero(self._turns).tolist():
            if any(joint in tree[other].ancestors or other in tree[joint].ancestors for other in joints):
                yield from (self._offset(joint, turn) for turn in _ZERO_TURNS_DEG)

    def _offset(self, joint: int, degrees: float, parameters: int = 0) -> Hypothesis:
        motion, tried = self.recorded.equations.motion, len(_ZERO_TURNS_DEG) * int(self._turns.sum())
        moved = motion._replace(q=motion.q + np.radians(degrees) * (np.arange(len(self.names)) == joint))
        words = {"shift": f"{degrees:.3g}", "joint": self.names[joint]}
        return self._other("position_offset", words, tried, parameters, motion=moved, joints=(joint,))

    def _estimated_offset(self, candidates: list[Hypothesis]) -> Iterator[Hypothesis]:
        """Offset near the best candidate that fits the efforts best, if the candidate itself explains something."""
        best = next((candidate for candidate in candidates if candidate.cause == "position_offset"), None)
        if best is None or self.fit(best).cost > self.fit(self.recorded).cost:
            return
        (joint,), shift = best.joints, best.equations.motion.q - self.recorded.equations.motion.q
        near = float(np.degrees(shift[0, joint])) + _TURN_STEP_DEG * np.array([-1, 1])
        found = scipy.optimize.minimize_scalar(
            lambda degrees: self.fit(self._offset(joint, degrees)).cost, bounds=near, options={"xatol": 0.5})
        yield self._offset(joint, found.x, 1)

    def _position_units(self) -> Iterator[Hypothesis]:
        if self._turns.any():
            factors = np.where(self._turns, np.pi / 180, 1.0)
            yield self._other("position_unit", case="by_effort", motion=self._moved(np.diag(factors)))

    def _reversal(self, joint: int) -> Array:
        """Matrix ``(n, n)`` that reverses the sign of one joint's value."""
        return np.diag(np.where(np.arange(len(self.names)) == joint, -1.0, 1.0))

    def _exchange(self, one: int, other: int) -> Array:
        """Matrix ``(n, n)`` that exchanges the values of two joints."""
        order = np.arange(len(self.names))
        order[[one, other]] = other, one
        return np.eye(len(order))[order]

    def _both(self, change: Array) -> dict[str, Any]:
        """Fields ``motion`` and ``mixing`` after one map ``(n, n)`` of both joint positions and efforts."""
        return {"motion": self._moved(change), "mixing": change @ self.recorded.mixing}

    def _moved(self, change: Array) -> DriveMotion:
        """Recorded motion with the positions of the joints mapped by ``(n, n)``."""
        (q, v, a, direction, fading), n = self.recorded.equations.motion, len(change)
        joints = np.where((change != 0).sum(axis=1) > 1, np.sign(v @ change.T), direction[:, :n] @ np.sign(change).T)
        sliding = np.hstack([joints, direction[:, n:]])
        return DriveMotion(q @ change.T, v @ change.T, a @ change.T, sliding, fading @ change.T)

    def _best(self, candidates: Iterable[Hypothesis], count: int = _SHORTLIST_COUNT) -> list[Hypothesis]:
        """Candidates that explain the efforts best with the URDF's bodies; only these are fitted with free bodies."""
        candidates = list(candidates)
        if len(candidates) <= count:
            return candidates
        costs = [
            candidate.equations.cost_of_urdf(self._efforts_under(candidate), self.counted) + candidate.penalty
            for candidate in candidates]
        return [candidates[index] for index in np.argsort(costs)[:count]]

    def _other(self, cause: str, words: Mapping[str, object] | None = None, tried: int = 1, parameters: int = 0,
            case: str = "", **changes: object) -> Hypothesis:
        """The reference with changes, as one of ``tried`` alternatives, with further fitted parameters.

        ``words`` fill in the evidence, and the remedy for a ``case`` of the cause. Changes of robot, motion or gravity
        apply to the equations.
        """
        kind, words = _KINDS[cause], words or {}
        penalty = float(np.log(tried)) + _COST_PER_PARAMETER * (kind.parameters + parameters)
        of_equations: Any = {key: changes.pop(key) for key in ("robot", "motion", "gravity") if key in changes}
        if of_equations:
            changes["equations"] = replace(self.recorded.equations, **of_equations)
        changes = {"gravest": kind.gravest, **changes, "evidence": kind.evidence.format(**words)}
        remedy = remedy_for(cause, case, **words)
        return replace(self.recorded, cause=cause, remedy=remedy, penalty=penalty, **changes)  # type: ignore[arg-type]

    def _pair(self, joints: tuple[int, int]) -> dict[str, str]:
        return {"one": self.names[joints[0]], "other": self.names[joints[1]], "mutual": ", and vice versa"}

    def _robot_with(self, terms: Sequence[UserTerm] = (), couplings: Sequence[Coupling] = ()) -> RobotModel:
        layout = self.robot.layout
        layout = replace(layout, terms=(*layout.terms, *terms), couplings=(*layout.couplings, *couplings))
        return replace(self.robot, layout=layout)

    @cached_property
    def _turns(self) -> Mask:
        return ~self.robot.slides

    @cached_property
    def _efforts(self) -> Array:
        """Efforts ``(N, n)`` of the reference."""
        return self._efforts_under(self.recorded)

    def _efforts_under(self, hypothesis: Hypothesis) -> Array:
        """Efforts ``(N, n)`` as corrected by a hypothesis."""
        efforts = self.efforts_after(hypothesis.lag)
        efforts = efforts if hypothesis.signs is None else efforts * hypothesis.signs
        return np.asarray(efforts @ hypothesis.mixing.T)


def _mapping(values: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {value:.3g}" for name, value in values.items()) + "}"
