"""Hypotheses on what may be wrong with efforts or with the motion beside them, and what each costs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.robot import TERM_SHAPES
from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Severity, remedy_for
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import RobotModel

from . import effort_equations as equations
from .effort_equations import BodyColumns, DriveColumns, EffortEquations, EffortFit, Motion

_NO_WORDS: Mapping[str, str] = {}
_OPPOSED = "effort of {} opposes what the URDF predicts"
_ZERO_TURNS_DEG = (90, -90, 180, 45, -45, 135, -135)  # by which zeros are wrong
_LAGS_S = (0.05, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5)  # shorter ones are estimated with the parameters
_SHORTLIST_COUNT = 5  # of many similar changes: those that the URDF's bodies explain best
_LONG_SHORTLIST_COUNT = 12  # of changes that need bodies of their own to tell them apart; arms have no more
_MAX_FACTOR_DEVIATION = 0.3  # relative; with more, a joint's effort does not show its factor
_COST_PER_PARAMETER = 1.5  # half the logarithm of the independent samples, as in the Bayesian information criterion
_MAX_LOAD_DISTANCE_M = 1.0  # from the joint that carries it
_LOAD_RADIUS_RATIO = 0.3  # of a ball, over the distance of its centre; the fit finds the inertia
_MIN_GRAVITY_SHARE = 0.3  # of its size; a smaller estimate of gravity has no direction
_BALANCED_WEIGHT_SHARE = 0.4  # of the largest weight on any joint; springs and counterweights carry the heaviest
_UNITS = {1e3: "N mm or mN m", 1e-3: "kN m"}  # of torque, by the factor of their values
_UNIT_LOG_SPREAD = np.log(2.0)  # factors of joints this close to a power of ten are a unit, not currents
_NOTICE_FACTOR, _CARE_FACTOR = 2.0, 3.0  # factors of efforts that wrong masses of the URDF do, or may, explain


@dataclass(frozen=True)
class Hypothesis:
    """A cause of efforts that do not fit the motion, and efforts and motion without it.

    Attributes
    ----------
    cause, evidence, remedy : as in a :class:`~inertid_ros.core.findings.Finding`; empty for what was recorded.
    mixing : (n, n), from recorded to correct efforts.
    motion : correct motion.
    gravity : (3,), m/s^2 in the root frame.
    gravest : that a finding may have: no coupling, gain or load makes a recording worthless.
    joints : affected joints; empty: all.
    lag : how much later than the motion efforts were reported [s].
    coupling : a drive that turns with several joints.
    terms : torques in addition to those of the robot as given.
    link : link with a load that the URDF lacks; empty if there is none.
    bodies : (nb, 10), parameters of the links with that load; default those of the URDF.
    penalty : cost of the parameters that were fitted to find it, and of having tried many similar ones.
    """

    cause: str
    evidence: str
    remedy: str
    mixing: Array
    motion: Motion
    gravity: Array
    gravest: Severity = Severity.REFUSE
    joints: tuple[int, ...] = ()
    lag: float = 0.0
    coupling: Coupling | None = None
    terms: tuple[UserTerm, ...] = ()
    link: str = ""
    bodies: Array | None = None
    penalty: float = 0.0

    @classmethod
    def as_recorded(cls, model: RobotModel, motion: Motion) -> "Hypothesis":
        return cls("", "", "", np.eye(model.joints), motion, np.array(model.options.gravity, dtype=float))

    def robot(self, model: RobotModel) -> RobotModel:
        """Robot with these bodies."""
        return model if self.bodies is None else model.with_prior_bodies(self.bodies)

    def same_motion(self, other: "Hypothesis") -> bool:
        """Whether motion and bodies are those of another hypothesis."""
        return self.motion is other.motion and self.bodies is other.bodies

    def same_drives(self, other: "Hypothesis") -> bool:
        """Whether the torques on the joints are those of another hypothesis."""
        return self.coupling is other.coupling and self.terms is other.terms


@dataclass(frozen=True)
class EffortComparison:
    """Costs of hypotheses on one recording.

    Attributes
    ----------
    model : the robot as given.
    efforts_after : from a lag [s] to the efforts ``(N, n)`` that were reported that much later [N m or N].
    counted : bool (n,), joints that report efforts.
    recorded : reference of the comparison: everything as recorded, or with the causes found so far put right.
    """

    model: RobotModel
    efforts_after: Callable[[float], Array]
    counted: NDArray[np.bool_]
    recorded: Hypothesis

    def corrected(self, hypothesis: Hypothesis) -> "EffortComparison":
        """Comparison of further causes with one put right."""
        return replace(self, recorded=replace(hypothesis, joints=(), link="", penalty=0.0))

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """Least and largest weight ``(n,)`` of the URDF's bodies on each joint (5th and 95th percentile)."""
        least, most = np.percentile(np.abs(self._bodies.weight_of_urdf), (5, 95), axis=0)
        return least, most

    @property
    def sizes(self) -> Array:
        """Largest effort ``(n,)`` of each joint (95th percentile)."""
        return np.asarray(np.percentile(np.abs(self._efforts), 95, axis=0))

    def fit(self, hypothesis: Hypothesis) -> EffortFit:
        """Best explanation under a hypothesis; its cost includes the penalty."""
        base = self.recorded
        if hypothesis.same_motion(base) and hypothesis.same_drives(base) and hypothesis.gravity is base.gravity:
            joint_equations = self._equations
            if hypothesis.lag != base.lag:
                joint_equations = joint_equations.with_efforts(self.efforts_after(hypothesis.lag))
        else:
            joint_equations = self._equations_of(hypothesis)
        fit = joint_equations.fit(hypothesis.mixing)
        return replace(fit, cost=fit.cost + hypothesis.penalty)

    def hypotheses(self, joints: list[int]) -> Iterator[Hypothesis]:
        """All hypotheses; those on single joints are on some ``joints`` only."""
        yield from self._best(list(self._loads()), _LONG_SHORTLIST_COUNT)
        yield from self._signs(joints)
        yield from self._best(list(self._effort_exchanges(joints)))
        yield from self._factors()
        yield from self._gravities()
        yield from self._delays()
        yield from self._best(list(self._couplings(joints)), _LONG_SHORTLIST_COUNT)
        yield from self._counterbalances(joints)
        yield from self._best([*self._joint_exchanges(joints), *self._position_offsets(), *self._position_units()])

    def _signs(self, joints: list[int]) -> Iterator[Hypothesis]:
        """One drive's effort, or that of all, has the wrong sign."""
        mixing, n = self.recorded.mixing, self.model.joints
        scales = _mapping(dict.fromkeys(self._counted_names, -1.0))
        yield self._other("effort_sign", _OPPOSED.format("all joints"), {"scales": scales}, mixing=-mixing)
        candidates = []
        for joint in joints:
            name, sign = self.model.joint_names[joint], np.where(np.arange(n) == joint, -1.0, 1.0)[:, None]
            words, evidence = {"scales": _mapping({name: -1.0})}, _OPPOSED.format(name)
            candidates.append(self._other("effort_sign", evidence, words, n, mixing=sign * mixing, joints=(joint,)))
        yield from self._best(candidates)

    def _effort_exchanges(self, joints: list[int]) -> Iterator[Hypothesis]:
        """The efforts of two joints are exchanged."""
        pairs = list(combinations(joints, 2))
        for pair in pairs:
            one, other = (self.model.joint_names[joint] for joint in pair)
            evidence = f"efforts of {one} and {other} fit one another's motion"
            mixing = self.recorded.mixing[_exchanged(self.model.joints, *pair)]
            words = {"one": one, "other": other}
            yield self._other("effort_exchange", evidence, words, len(pairs), mixing=mixing, joints=pair)

    def _factors(self) -> Iterator[Hypothesis]:
        """Efforts in another unit, motor currents, or gains: a factor for each joint whose effort shows it."""
        rigid, factor = self._rigid_of_urdf(self.recorded.gravity), np.ones(self.model.joints)
        for _ in range(3):
            ratio, determined = self._ratios(rigid, self._efforts / factor)
            if not determined.any():
                return
            ratio = np.abs(ratio)  # signs are other causes
            common = np.exp(np.mean(np.log(ratio[determined])))
            factor = factor * np.where(determined, ratio, common)
            mixing = np.diag(1 / factor) @ self.recorded.mixing
            rigid = self._equations.fit(mixing).rigid
        known = factor[determined]
        gains = _gains(known, self._counted_names)
        yield self._other(parameters=int(determined.sum()), mixing=mixing, **gains)
        power = 10.0 ** round(np.log10(float(np.median(known))))
        if power != 1.0:
            unit = _unit(power, self._counted_names)
            yield self._other(parameters=1, mixing=self.recorded.mixing / power, **unit)

    def _gravities(self) -> Iterator[Hypothesis]:
        """Gravity has been taken out of the efforts, or points elsewhere: along an axis, or anywhere."""
        size = float(np.linalg.norm(self.recorded.gravity))
        if not size:
            return
        yield self._other("gravity_compensated", "efforts lack the torque of gravity", gravity=np.zeros(3))
        axes = [size * sign * axis for axis in np.eye(3) for sign in (1, -1)]
        others = [axis for axis in axes if not np.allclose(axis, self.recorded.gravity, atol=0.1 * size)]
        candidates = [(gravity, len(axes), 0) for gravity in others]
        fitted = self._gravity_of_urdf()
        length = float(np.linalg.norm(fitted))
        if length > _MIN_GRAVITY_SHARE * size:
            candidates.append((size * fitted / length, 1, 2))
        for gravity, tried, parameters in candidates:
            vector = "[" + ", ".join(f"{round(x, 2) + 0.0:g}" for x in gravity.tolist()) + "]"
            evidence = f"efforts fit a gravity of {vector} in the root frame"
            yield self._other("gravity_direction", evidence, {"vector": vector}, tried, parameters, gravity=gravity)

    def _delays(self) -> Iterator[Hypothesis]:
        """Efforts come later than the motion, or earlier."""
        for lag in (*_LAGS_S, *(-lag for lag in _LAGS_S)):
            order = "after" if lag > 0 else "before"
            evidence = f"efforts are stamped about {abs(1e3 * lag):.0f} ms {order} the motion"
            yield self._other("delay", evidence, parameters=1, lag=lag)

    def _couplings(self, joints: list[int]) -> Iterator[Hypothesis]:
        """A drive turns with two neighbouring joints at once."""
        parents = [joint.parent for joint in self.model.tree]
        first = len(parents) - self.model.joints
        for joint in range(self.model.joints):
            before = parents[first + joint] - first
            if before < 0 or not {joint, before} & set(joints):
                continue
            pair = (self.model.joint_names[before], self.model.joint_names[joint])
            if any(set(other.joints) >= set(pair) for other in self.model.layout.couplings):
                continue
            for ratio, speeds in ((1.0, "sum"), (-1.0, "difference")):
                words = {"drive": f"{{wrist: {{joints: [{', '.join(pair)}], ratios: [1, {ratio:g}]}}}}"}
                evidence = f"efforts of {pair[0]} and {pair[1]} follow the {speeds} of their speeds"
                yield self._other(
                    "coupling", evidence, words, 2 * len(joints), 3, gravest=Severity.REJECT, joints=(before, joint),
                    coupling=Coupling("coupling", pair, (1.0, ratio)),
                )  # fmt: skip

    def _loads(self) -> Iterator[Hypothesis]:
        """A link at an end of the robot carries something that the URDF lacks, such as a gripper."""
        ends = sorted(set(range(len(self.model.tree))) - {joint.parent for joint in self.model.tree})
        bodies = self.recorded.robot(self.model).consistent_body_prior
        for end in ends:
            mass, *moment = self._load_of_urdf(end)
            centre = np.array(moment) / max(mass, 1e-9)
            # More than the whole robot is no load, but a fault of something else.
            if 0 < mass < bodies[:, 0].sum() and np.linalg.norm(centre) < _MAX_LOAD_DISTANCE_M:
                radius = _LOAD_RADIUS_RATIO * float(np.linalg.norm(centre))
                load = from_mass_com_inertia(mass, centre, 0.4 * mass * radius**2 * np.eye(3))
                loaded, link = bodies.copy(), self.model.link_names[end]
                loaded[end] += load
                yield self._other(
                    "undeclared_load", f"{link} carries about {mass:.2g} kg more than in the URDF", {}, len(ends), 4,
                    link=link, bodies=loaded, gravest=Severity.NOTICE,
                )  # fmt: skip

    def _counterbalances(self, joints: list[int]) -> Iterator[Hypothesis]:
        """A spring or a weight that the URDF lacks carries the load of a joint."""
        heavy = self.weights[1] > _BALANCED_WEIGHT_SHARE * self.weights[1].max()
        balanced = {term.joint for term in (*self.model.layout.terms, *self.recorded.terms)}
        names = self.model.joint_names
        turning = [joint for joint in joints if heavy[joint] and self._turns[joint] and names[joint] not in balanced]
        for joint in turning:
            term = UserTerm("counterbalance", names[joint], TERM_SHAPES["counterbalance"][0])
            evidence = f"a torque that follows the position of {names[joint]} acts beside the URDF's bodies"
            yield self._other(
                "counterbalance", evidence, {"joint": names[joint]}, len(turning), 2, joints=(joint,),
                terms=(*self.recorded.terms, term), gravest=Severity.REJECT,
            )  # fmt: skip

    def _joint_exchanges(self, joints: list[int]) -> Iterator[Hypothesis]:
        """Two joints are exchanged, with positions and efforts."""
        n, motion = self.model.joints, self.recorded.motion
        pairs = [pair for pair in combinations(range(n), 2) if self._turns[pair[0]] == self._turns[pair[1]]]
        pairs = [pair for pair in pairs if set(pair) & set(joints)]
        for pair in pairs:
            order, (one, other) = _exchanged(n, *pair), (self.model.joint_names[joint] for joint in pair)
            moved = self._moved(itemgetter((slice(None), order)))
            moved = replace(moved, direction=np.hstack([motion.direction[:, order], motion.direction[:, n:]]))
            evidence = f"positions and efforts of {one} and {other} fit one another's place in the URDF"
            yield self._other(
                "joint_exchange", evidence, {"one": one, "other": other}, len(pairs), motion=moved, joints=pair,
                mixing=self.recorded.mixing[order],
            )  # fmt: skip

    def _position_offsets(self) -> Iterator[Hypothesis]:
        """The zero of a joint is turned."""
        turning, motion = np.flatnonzero(self._turns).tolist(), self.recorded.motion
        for joint in turning:
            name = self.model.joint_names[joint]
            for turn in _ZERO_TURNS_DEG:
                q = motion.q.copy()
                q[:, self.model.positions - self.model.joints + joint] += -np.radians(turn)
                evidence = f"gravity of {name} fits positions that are {-turn:g} degrees further"
                words, tried = {"turn": f"{turn:g}", "joint": name}, len(_ZERO_TURNS_DEG) * len(turning)
                moved = replace(motion, q=q)
                yield self._other("position_offset", evidence, words, tried, motion=moved, joints=(joint,))

    def _position_units(self) -> Iterator[Hypothesis]:
        """Angles are in degrees."""
        if self._turns.any():
            factors = np.where(self._turns, np.pi / 180, 1.0)
            moved = self._moved(lambda values: values * factors)
            yield self._other("position_unit", "efforts fit positions in degrees", case="by_effort", motion=moved)

    def _moved(self, change: Callable[[Array], Array]) -> Motion:
        """Recorded motion with a change of the joints' ``q``, ``v`` and ``a``, ``(N, n)``; a free base stays."""
        motion, n = self.recorded.motion, self.model.joints
        channels = {key: np.split(getattr(motion, key), [-n], axis=1) for key in ("q", "v", "a")}
        return replace(motion, **{key: np.hstack([base, change(values)]) for key, (base, values) in channels.items()})

    def _best(self, candidates: list[Hypothesis], count: int = _SHORTLIST_COUNT) -> list[Hypothesis]:
        """Candidates that the URDF's bodies explain best, and that are worth bodies of their own."""
        if len(candidates) <= count:
            return candidates
        costs = [self._cost_of_urdf(candidate) for candidate in candidates]
        return [candidates[index] for index in np.argsort(costs)[:count]]

    def _other(
        self, cause: str, evidence: str, words: Mapping[str, str] = _NO_WORDS, tried: int = 1, parameters: int = 0,
        case: str = "", **changes: object,
    ) -> Hypothesis:  # fmt: skip
        """The recorded state with changes; one of ``tried`` alternatives, with fitted parameters.

        ``words`` are those of the remedy, in a case of the cause.
        """
        penalty, remedy = float(np.log(tried)) + _COST_PER_PARAMETER * parameters, remedy_for(cause, case, **words)
        changes = {"gravest": Severity.REFUSE, **changes, "evidence": evidence, "remedy": remedy}
        return replace(self.recorded, cause=cause, penalty=penalty, **changes)  # type: ignore[arg-type]

    @property
    def _counted_names(self) -> list[str]:
        return [name for name, counted in zip(self.model.joint_names, self.counted, strict=True) if counted]

    @cached_property
    def _turns(self) -> NDArray[np.bool_]:
        """Joints ``(n,)`` that turn; others slide."""
        axes = self.model.axes[len(self.model.link_names) - self.model.joints :]
        return np.asarray((axes[:, :3] == 0).all(axis=1))

    @cached_property
    def _bodies(self) -> BodyColumns:
        return BodyColumns(self.recorded.robot(self.model), self.recorded.motion)

    @cached_property
    def _drives(self) -> DriveColumns:
        return self._drives_of(self.recorded, self.recorded.motion, self._bodies)

    @cached_property
    def _equations(self) -> EffortEquations:
        return self._equations_of(self.recorded)

    @cached_property
    def _efforts(self) -> Array:
        """Efforts ``(N, n)`` without any other change."""
        return np.asarray(self.efforts_after(self.recorded.lag) @ self.recorded.mixing.T)

    def _equations_of(self, hypothesis: Hypothesis) -> EffortEquations:
        bodies = self._bodies_of(hypothesis)
        drives = self._drives_of(hypothesis, hypothesis.motion, bodies)
        efforts = self.efforts_after(hypothesis.lag)
        return EffortEquations(bodies.deviations(hypothesis.gravity), drives, efforts, self.counted)

    def _bodies_of(self, hypothesis: Hypothesis) -> BodyColumns:
        if hypothesis.same_motion(self.recorded):
            return self._bodies
        return BodyColumns(hypothesis.robot(self.model), hypothesis.motion)

    def _drives_of(self, hypothesis: Hypothesis, motion: Motion, bodies: BodyColumns) -> DriveColumns:
        layout = self.model.layout
        layout = replace(layout, terms=(*layout.terms, *hypothesis.terms))
        if hypothesis.coupling is not None:
            layout = replace(layout, couplings=(*layout.couplings, hypothesis.coupling))
            speed = motion.v[:, self.model.velocities - self.model.joints :] @ layout.coupling_ratios[-1]
            motion = replace(motion, direction=np.column_stack([motion.direction, np.sign(speed)]))
        return DriveColumns(layout, motion, bodies)

    def _rigid_of_urdf(self, gravity: Array) -> Array:
        """Torque ``(n, N)`` of the URDF's bodies."""
        bodies = self._bodies.deviations(gravity)
        return np.asarray(bodies @ equations.no_deviation(bodies.shape[2]))

    def _cost_of_urdf(self, hypothesis: Hypothesis) -> float:
        """Cost with the bodies of the URDF: one inverse dynamics, or none if only efforts change."""
        base, changed = self.recorded, np.ones(len(self.counted), dtype=bool)
        if hypothesis.same_motion(base) and hypothesis.lag == base.lag:
            changed = (hypothesis.mixing != base.mixing).any(axis=1)
            if not hypothesis.same_drives(base):
                changed[list(hypothesis.joints)] = True
        unchanged = self._costs_of_recorded[~changed].sum()
        return float(hypothesis.penalty + unchanged + self._costs_of_urdf(hypothesis, changed).sum())

    @cached_property
    def _costs_of_recorded(self) -> Array:
        """Costs ``(n,)`` of the joints as recorded, with the bodies of the URDF."""
        return self._costs_of_urdf(self.recorded, self.counted)

    def _costs_of_urdf(self, hypothesis: Hypothesis, wanted: NDArray[np.bool_]) -> Array:
        """Costs ``(n,)`` of some joints with the bodies of the URDF and any friction; zero for others."""
        bodies, costs, drives = self._bodies_of(hypothesis), np.zeros(len(self.counted)), self._drives
        rest = self.efforts_after(hypothesis.lag) @ hypothesis.mixing.T
        variance = np.maximum(np.var(rest, axis=0), 1e-300)
        rest = rest - bodies.torque_of_urdf
        if hypothesis.motion.v is not self.recorded.motion.v:
            drives = self._drives_of(hypothesis, hypothesis.motion, bodies)
        elif not hypothesis.same_drives(self.recorded):  # at the same speeds, single drives are the same
            drives = self._drives_of(hypothesis, self.recorded.motion, self._bodies)
        for joint in np.flatnonzero(self.counted & wanted).tolist():
            error = drives.unexplained(joint, rest[:, [joint]])
            share = np.mean(error**2) / (equations.EFFORT_FLOOR_SHARE**2 * variance[joint])
            costs[joint] = 0.5 * equations.INDEPENDENT_SAMPLES * np.log1p(share)
        return costs

    def _ratios(self, rigid: Array, efforts: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Factor ``(n,)`` of each joint's effort over a torque, and whether it is determined."""
        ratio, determined = np.ones(len(rigid)), np.zeros(len(rigid), dtype=bool)
        for joint in np.flatnonzero(self.counted).tolist():
            both = np.column_stack([rigid[joint], efforts[:, joint]])
            torque, effort = self._drives.unexplained(joint, both).T
            power = float(torque @ torque)
            if power <= 1e-12 * float(rigid[joint] @ rigid[joint]):
                continue
            ratio[joint] = torque @ effort / power
            rest = effort - ratio[joint] * torque
            deviation = np.sqrt(float(rest @ rest) / equations.INDEPENDENT_SAMPLES / power)
            determined[joint] = deviation < _MAX_FACTOR_DEVIATION * abs(ratio[joint])
        return ratio, determined

    def _gravity_of_urdf(self) -> Array:
        """Gravity ``(3,)`` with which the URDF's bodies explain the efforts best [m/s^2]."""
        still, *axes = (self._rigid_of_urdf(axis) for axis in np.vstack([np.zeros(3), np.eye(3)]))
        return self._explained(np.stack([axis - still for axis in axes], axis=2), still.T)

    def _load_of_urdf(self, body: int) -> Array:
        """Mass and first moment ``(4,)`` [kg, kg m] to be added to a body of the URDF."""
        return self._explained(self._bodies.moments(body, self.recorded.gravity), self._bodies.torque_of_urdf)

    def _explained(self, columns: Array, known: Array) -> Array:
        """Factors ``(p,)`` of columns ``(n, N, p)`` that explain, with the drives, efforts less torques ``(N, n)``."""
        count = columns.shape[2]
        normal, right = np.zeros((count, count)), np.zeros(count)
        for joint in np.flatnonzero(self.counted).tolist():
            free = np.column_stack([columns[joint], self._efforts[:, joint] - known[:, joint]])
            free = self._drives.unexplained(joint, free) / max(float(np.std(self._efforts[:, joint])), 1e-12)
            normal += free[:, :count].T @ free[:, :count]
            right += free[:, :count].T @ free[:, count]
        return np.asarray(np.linalg.lstsq(normal, right, rcond=1e-6)[0])


def _exchanged(count: int, one: int, other: int) -> list[int]:
    """Order of ``count`` joints with two of them exchanged."""
    order = list(range(count))
    order[one], order[other] = other, one
    return order


def _gains(factors: Array, names: Sequence[str]) -> dict:
    """Cause of efforts that are factors ``(k,)`` times the torques: a unit if these are alike, or currents."""
    power = float(10.0 ** np.round(np.log10(np.median(factors))))
    if power in _UNITS and np.mean(np.abs(np.log(factors / power)) < _UNIT_LOG_SPREAD) > 0.75:
        return _unit(power, names)
    largest = float(np.exp(np.max(np.abs(np.log(factors)))))
    gravest = Severity.REFUSE
    if largest < _CARE_FACTOR:
        gravest = Severity.CARE if largest > _NOTICE_FACTOR else Severity.NOTICE
    evidence = f"efforts are {', '.join(f'{x:.3g}' for x in factors)} times the torques that the URDF predicts"
    if len(names) != len(factors):
        return {"cause": "effort_current", "evidence": evidence, "gravest": gravest}
    words = {"scales": _mapping(dict(zip(names, 1 / factors, strict=True)))}
    return {"cause": "effort_current", "evidence": evidence, "gravest": gravest, "words": words, "case": "estimated"}


def _unit(power: float, names: Sequence[str]) -> dict:
    """Cause of efforts that are a power of ten times the torques."""
    if power in _UNITS:
        evidence = f"efforts are {power:g} times the torques that the URDF predicts (they look like {_UNITS[power]})"
        words = {"scales": _mapping(dict.fromkeys(names, 1 / power))}
        return {"cause": "effort_unit", "evidence": evidence, "words": words}
    evidence = f"efforts are about {power:g} times the torques that the URDF predicts, which is no unit of torque"
    words = {"scales": f"{1 / power:g}"}
    return {"cause": "effort_current", "evidence": evidence, "words": words, "case": "estimated"}


def _mapping(values: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {value:.3g}" for name, value in values.items()) + "}"
