"""Hypotheses on what may be wrong with efforts or with the motion beside them, and what each costs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.robot import TERM_SHAPES
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import RobotModel

from .effort_equations import EFFORT_FLOOR_SHARE, INDEPENDENT_SAMPLES, EffortEquations, EffortFit, Motion, TorqueColumns

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
_EQUATION_FIELDS = ("motion", "gravity", "coupling", "terms", "bodies")  # of a hypothesis, that make its equations


@dataclass(frozen=True)
class Hypothesis:
    """A cause of efforts that do not fit the motion, and efforts and motion without it.

    Attributes
    ----------
    cause : str
        Key of the table of causes; empty for what was recorded.
    mixing : ndarray, shape (n, n)
        From recorded to correct efforts.
    motion : Motion
        Correct motion.
    gravity : ndarray, shape (3,)
        m/s^2 in the root frame.
    joints : tuple of int
        Affected joints; empty: all.
    amount : tuple of float
        Factors of the efforts, degrees, seconds, ratios, m/s^2 or kg, by the cause.
    lag : float
        How much later than the motion efforts were reported [s].
    coupling : Coupling, optional
        A drive that turns with several joints.
    terms : tuple of UserTerm
        Torques in addition to those of the robot as given.
    link : str
        Link with a load that the URDF lacks; empty if there is none.
    bodies : ndarray, shape (nb, 10), optional
        Parameters of the links with that load; default those of the URDF.
    penalty : float
        Cost of the parameters that were fitted to find it, and of having tried many similar ones.
    """

    cause: str
    mixing: Array
    motion: Motion
    gravity: Array
    joints: tuple[int, ...] = ()
    amount: tuple[float, ...] = ()
    lag: float = 0.0
    coupling: Coupling | None = None
    terms: tuple[UserTerm, ...] = ()
    link: str = ""
    bodies: Array | None = None
    penalty: float = 0.0

    @property
    def as_recorded(self) -> "Hypothesis":
        """The same as the recorded state, with which further causes are compared."""
        return replace(self, joints=(), amount=(), link="", penalty=0.0)

    def robot(self, model: RobotModel) -> RobotModel:
        """Robot with these bodies."""
        return model if self.bodies is None else model.with_prior_bodies(self.bodies)


def exchanged(count: int, one: int, other: int) -> list[int]:
    """Order of ``count`` joints with two of them exchanged."""
    order = list(range(count))
    order[one], order[other] = other, one
    return order


def reordered(model: RobotModel, motion: Motion, order: list[int]) -> Motion:
    """Motion with joints in another order; a free base stays."""
    n = model.joints

    def moved(values: Array, first: int) -> Array:
        return np.hstack([values[:, :first], values[:, first:][:, order]])

    return Motion(
        moved(motion.q, model.positions - n), moved(motion.v, model.velocities - n),
        moved(motion.a, model.velocities - n), np.hstack([motion.direction[:, order], motion.direction[:, n:]]),
    )


def turned(model: RobotModel, motion: Motion, joint: int, angle: float) -> Motion:
    """Motion with a joint turned by an angle [rad]."""
    q = motion.q.copy()
    q[:, model.positions - model.joints + joint] += angle
    return replace(motion, q=q)


def scaled(model: RobotModel, motion: Motion, joints: list[int], factor: float) -> Motion:
    """Motion of some joints times a factor."""
    changed = {}
    for key in ("q", "v", "a"):
        values = getattr(motion, key).copy()
        values[:, [values.shape[1] - model.joints + joint for joint in joints]] *= factor
        changed[key] = values
    return replace(motion, **changed)


@dataclass(frozen=True)
class EffortComparison:
    """Costs of hypotheses on one recording.

    Attributes
    ----------
    model : RobotModel
        The robot as given.
    efforts_after : callable
        From a lag [s] to the efforts ``(N, n)`` that were reported that much later [N m or N].
    counted : ndarray of bool, shape (n,)
        Joints that report efforts.
    recorded : Hypothesis
        Reference of the comparison: everything as recorded, or with the causes found so far put right.
    """

    model: RobotModel
    efforts_after: Callable[[float], Array]
    counted: NDArray[np.bool_]
    recorded: Hypothesis

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """Least and largest weight ``(n,)`` of the URDF's bodies on each joint (5th and 95th percentile)."""
        least, most = np.percentile(np.abs(self._columns.weight_of_urdf), (5, 95), axis=0)
        return least, most

    @property
    def sizes(self) -> Array:
        """Largest effort ``(n,)`` of each joint (95th percentile)."""
        return np.asarray(np.percentile(np.abs(self._efforts), 95, axis=0))

    def fit(self, hypothesis: Hypothesis) -> EffortFit:
        """Best explanation under a hypothesis; its cost includes the penalty."""
        base = self.recorded
        same = all(getattr(hypothesis, key) is getattr(base, key) for key in _EQUATION_FIELDS)
        equations = self._equations if same else self._made(hypothesis)
        if same and hypothesis.lag != base.lag:
            equations = equations.with_efforts(self.efforts_after(hypothesis.lag))
        fit = equations.fit(hypothesis.mixing)
        return replace(fit, cost=fit.cost + hypothesis.penalty)

    def signs(self, joints: list[int]) -> Iterator[Hypothesis]:
        """One drive's effort, or that of all, has the wrong sign."""
        n = self.model.joints
        yield self._other("effort_sign", mixing=-self.recorded.mixing)
        signs = [np.where(np.arange(n) == joint, -1.0, 1.0)[:, None] * self.recorded.mixing for joint in joints]
        pairs = zip(joints, signs, strict=True)
        yield from self._best([self._other("effort_sign", n, mixing=mixing, joints=(j,)) for j, mixing in pairs])

    def exchanges(self, joints: list[int]) -> Iterator[Hypothesis]:
        """The efforts of two joints are exchanged."""
        pairs = list(combinations(joints, 2))
        mixings = [self.recorded.mixing[exchanged(self.model.joints, *pair)] for pair in pairs]
        candidates = [
            self._other("effort_exchange", len(pairs), mixing=mixing, joints=pair)
            for pair, mixing in zip(pairs, mixings, strict=True)
        ]
        yield from self._best(candidates)

    def factors(self) -> Iterator[Hypothesis]:
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
        amount = tuple(np.where(determined, factor, np.nan).tolist())
        yield self._other("effort_current", 1, int(determined.sum()), mixing=mixing, amount=amount)
        median = float(np.median(factor[determined]))
        power = 10.0 ** round(np.log10(median))
        if power != 1.0:
            amount = (power,) * self.model.joints
            yield self._other("effort_unit", 1, 1, mixing=self.recorded.mixing / power, amount=amount)

    def gravities(self) -> Iterator[Hypothesis]:
        """Gravity has been taken out of the efforts, or points elsewhere: along an axis, or anywhere."""
        size = float(np.linalg.norm(self.recorded.gravity))
        if not size:
            return
        yield self._other("gravity_compensated", gravity=np.zeros(3))
        axes = [size * sign * axis for axis in np.eye(3) for sign in (1, -1)]
        for gravity in axes:
            if not np.allclose(gravity, self.recorded.gravity, atol=0.1 * size):
                yield self._other("gravity_direction", len(axes), gravity=gravity, amount=tuple(gravity.tolist()))
        fitted = self._gravity_of_urdf()
        length = float(np.linalg.norm(fitted))
        if length > _MIN_GRAVITY_SHARE * size:
            gravity = size * fitted / length
            yield self._other("gravity_direction", 1, 2, gravity=gravity, amount=tuple(gravity.tolist()))

    def delays(self) -> Iterator[Hypothesis]:
        """Efforts come later than the motion, or earlier."""
        for lag in (*_LAGS_S, *(-lag for lag in _LAGS_S)):
            yield self._other("delay", 1, 1, lag=lag, amount=(lag,))

    def couplings(self, joints: list[int]) -> Iterator[Hypothesis]:
        """A drive turns with two neighbouring joints at once."""
        yield from self._best(list(self._couplings(joints)), _LONG_SHORTLIST_COUNT)

    def _couplings(self, joints: list[int]) -> Iterator[Hypothesis]:
        parents = [joint.parent for joint in self.model.tree]
        first = len(parents) - self.model.joints
        names = self.model.joint_names
        for joint in range(self.model.joints):
            before = parents[first + joint] - first
            if before < 0 or not {joint, before} & set(joints):
                continue
            for ratio in (1.0, -1.0):
                coupling = Coupling("coupling", (names[before], names[joint]), (1.0, ratio))
                if not any(set(other.joints) >= set(coupling.joints) for other in self.model.layout.couplings):
                    yield self._other(
                        "coupling", 2 * len(joints), 3, coupling=coupling, joints=(before, joint), amount=(1.0, ratio)
                    )

    def loads(self) -> Iterator[Hypothesis]:
        """A link at an end of the robot carries something that the URDF lacks, such as a gripper."""
        yield from self._best(list(self._loads()), _LONG_SHORTLIST_COUNT)

    def _loads(self) -> Iterator[Hypothesis]:
        ends = sorted(set(range(len(self.model.tree))) - {joint.parent for joint in self.model.tree})
        bodies = self._robot.consistent_body_prior
        for end in ends:
            mass, *moment = self._load_of_urdf(end)
            centre = np.array(moment) / max(mass, 1e-9)
            # More than the whole robot is no load, but a fault of something else.
            if 0 < mass < bodies[:, 0].sum() and np.linalg.norm(centre) < _MAX_LOAD_DISTANCE_M:
                radius = _LOAD_RADIUS_RATIO * float(np.linalg.norm(centre))
                load = from_mass_com_inertia(mass, centre, 0.4 * mass * radius**2 * np.eye(3))
                loaded = bodies.copy()
                loaded[end] += load
                changed = {"link": self.model.link_names[end], "bodies": loaded, "amount": (mass,)}
                yield self._other("undeclared_load", len(ends), 4, **changed)

    def counterbalances(self, joints: list[int]) -> Iterator[Hypothesis]:
        """A spring or a weight that the URDF lacks carries the load of a joint."""
        heavy = self.weights[1] > _BALANCED_WEIGHT_SHARE * self.weights[1].max()
        balanced = {term.joint for term in (*self.model.layout.terms, *self.recorded.terms)}
        names = self.model.joint_names
        turning = [joint for joint in joints if heavy[joint] and self._turns[joint] and names[joint] not in balanced]
        for joint in turning:
            term = UserTerm("counterbalance", names[joint], TERM_SHAPES["counterbalance"][0])
            yield self._other("counterbalance", len(turning), 2, terms=(*self.recorded.terms, term), joints=(joint,))

    def motions(self, joints: list[int]) -> list[Hypothesis]:
        """Joints are exchanged, zeros are off, or angles are in degrees: those that the URDF's bodies explain best."""
        n, motion = self.model.joints, self.recorded.motion
        turning = [joint for joint in range(n) if self._turns[joint]]
        candidates = []
        pairs = [pair for pair in combinations(range(n), 2) if self._turns[pair[0]] == self._turns[pair[1]]]
        pairs = [pair for pair in pairs if set(pair) & set(joints)]
        for pair in pairs:
            order = exchanged(n, *pair)
            moved, mixing = reordered(self.model, motion, order), self.recorded.mixing[order]
            candidates.append(self._other("joint_exchange", len(pairs), mixing=mixing, motion=moved, joints=pair))
        for joint in turning:
            for turn in _ZERO_TURNS_DEG:
                moved = turned(self.model, motion, joint, -np.radians(turn))
                tried, amount = len(_ZERO_TURNS_DEG) * len(turning), (float(turn),)
                candidates.append(self._other("position_offset", tried, motion=moved, joints=(joint,), amount=amount))
        if turning:
            candidates.append(self._other("position_unit", motion=scaled(self.model, motion, turning, np.pi / 180)))
        return self._best(candidates)

    def _best(self, candidates: list[Hypothesis], count: int = _SHORTLIST_COUNT) -> list[Hypothesis]:
        """Candidates that the URDF's bodies explain best, and that are worth bodies of their own."""
        if len(candidates) <= count:
            return candidates
        costs = [self._cost_of_urdf(candidate) for candidate in candidates]
        return [candidates[index] for index in np.argsort(costs)[:count]]

    def _other(self, cause: str, tried: int = 1, parameters: int = 0, **changes: object) -> Hypothesis:
        """The recorded state with changes; one of ``tried`` alternatives, with fitted parameters."""
        penalty = float(np.log(tried)) + _COST_PER_PARAMETER * parameters
        return replace(self.recorded, cause=cause, penalty=penalty, **changes)  # type: ignore[arg-type]

    @cached_property
    def _columns(self) -> TorqueColumns:
        return TorqueColumns(self._robot, self.recorded.motion)

    @cached_property
    def _turns(self) -> NDArray[np.bool_]:
        """Joints ``(n,)`` that turn; others slide."""
        axes = self.model.axes[len(self.model.link_names) - self.model.joints :]
        return np.asarray((axes[:, :3] == 0).all(axis=1))

    @cached_property
    def _with_drives(self) -> TorqueColumns:
        """Columns with the torques found so far."""
        return _driven(self._columns, self.recorded)

    @property
    def _robot(self) -> RobotModel:
        """The robot as given, with the load found so far."""
        return self.recorded.robot(self.model)

    @cached_property
    def _equations(self) -> EffortEquations:
        return self._made(self.recorded)

    @cached_property
    def _efforts(self) -> Array:
        """Efforts ``(N, n)`` without any other change."""
        return np.asarray(self.efforts_after(self.recorded.lag) @ self.recorded.mixing.T)

    def _made(self, hypothesis: Hypothesis) -> EffortEquations:
        columns = self._columns_of(hypothesis)
        bodies, efforts = columns.bodies(hypothesis.gravity), self.efforts_after(hypothesis.lag)
        columns = _driven(columns, hypothesis)
        drives = [columns.drives(joint) for joint in range(self.model.joints)]
        return EffortEquations(bodies, drives, columns.not_negative, efforts, self.counted)

    def _columns_of(self, hypothesis: Hypothesis) -> TorqueColumns:
        """Columns of its motion and bodies, without a coupling."""
        same = hypothesis.motion is self.recorded.motion and hypothesis.bodies is self.recorded.bodies
        return self._columns if same else TorqueColumns(hypothesis.robot(self.model), hypothesis.motion)

    def _rigid_of_urdf(self, gravity: Array) -> Array:
        """Torque ``(n, N)`` of the URDF's bodies."""
        bodies = self._columns.bodies(gravity)
        return np.asarray(bodies @ EffortEquations.unchanged(bodies.shape[2]))

    def _cost_of_urdf(self, hypothesis: Hypothesis) -> float:
        """Cost with the bodies of the URDF: one inverse dynamics, or none if only efforts change."""
        base, changed = self.recorded, np.ones(len(self.counted), dtype=bool)
        if self._columns_of(hypothesis) is self._columns and hypothesis.lag == base.lag:
            changed = (hypothesis.mixing != base.mixing).any(axis=1)
            if hypothesis.coupling is not base.coupling or hypothesis.terms is not base.terms:
                changed[list(hypothesis.joints)] = True
        unchanged = self._costs_of_recorded[~changed].sum()
        return float(hypothesis.penalty + unchanged + self._costs_of_urdf(hypothesis, changed).sum())

    @cached_property
    def _costs_of_recorded(self) -> Array:
        """Costs ``(n,)`` of the joints as recorded, with the bodies of the URDF."""
        return self._costs_of_urdf(self.recorded, self.counted)

    def _costs_of_urdf(self, hypothesis: Hypothesis, wanted: NDArray[np.bool_]) -> Array:
        """Costs ``(n,)`` of some joints with the bodies of the URDF and any friction; zero for others."""
        columns, costs = self._columns_of(hypothesis), np.zeros(len(self.counted))
        rest = self.efforts_after(hypothesis.lag) @ hypothesis.mixing.T
        variance = np.maximum(np.var(rest, axis=0), 1e-300)
        rest = rest - columns.torque_of_urdf
        if hypothesis.motion.v is self.recorded.motion.v:
            columns = self._columns  # friction is the same
        columns = _driven(columns, hypothesis)
        for joint in np.flatnonzero(self.counted & wanted).tolist():
            error = columns.without_drives(joint, rest[:, [joint]])
            share = np.mean(error**2) / (EFFORT_FLOOR_SHARE**2 * variance[joint])
            costs[joint] = 0.5 * INDEPENDENT_SAMPLES * np.log1p(share)
        return costs

    def _ratios(self, rigid: Array, efforts: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Factor ``(n,)`` of each joint's effort over a torque, and whether it is determined."""
        ratio, determined = np.ones(len(rigid)), np.zeros(len(rigid), dtype=bool)
        for joint in np.flatnonzero(self.counted).tolist():
            both = np.column_stack([rigid[joint], efforts[:, joint]])
            torque, effort = self._with_drives.without_drives(joint, both).T
            power = float(torque @ torque)
            if power <= 1e-12 * float(rigid[joint] @ rigid[joint]):
                continue
            ratio[joint] = torque @ effort / power
            rest = effort - ratio[joint] * torque
            deviation = np.sqrt(float(rest @ rest) / INDEPENDENT_SAMPLES / power)
            determined[joint] = deviation < _MAX_FACTOR_DEVIATION * abs(ratio[joint])
        return ratio, determined

    def _gravity_of_urdf(self) -> Array:
        """Gravity ``(3,)`` with which the URDF's bodies explain the efforts best [m/s^2]."""
        still, *axes = (self._rigid_of_urdf(axis) for axis in np.vstack([np.zeros(3), np.eye(3)]))
        return self._explained(np.stack([axis - still for axis in axes], axis=2), still.T)

    def _load_of_urdf(self, body: int) -> Array:
        """Mass and first moment ``(4,)`` [kg, kg m] to be added to a body of the URDF."""
        columns = self._columns.moments(body, self.recorded.gravity)
        return self._explained(columns, self._columns.torque_of_urdf)

    def _explained(self, columns: Array, known: Array) -> Array:
        """Factors ``(p,)`` of columns ``(n, N, p)`` that explain, with the drives, efforts less torques ``(N, n)``."""
        count = columns.shape[2]
        normal, right = np.zeros((count, count)), np.zeros(count)
        for joint in np.flatnonzero(self.counted).tolist():
            free = np.column_stack([columns[joint], self._efforts[:, joint] - known[:, joint]])
            free = self._with_drives.without_drives(joint, free) / max(float(np.std(self._efforts[:, joint])), 1e-12)
            normal += free[:, :count].T @ free[:, :count]
            right += free[:, :count].T @ free[:, count]
        return np.asarray(np.linalg.lstsq(normal, right, rcond=1e-6)[0])


def _driven(columns: TorqueColumns, hypothesis: Hypothesis) -> TorqueColumns:
    """Columns with the torques on the joints under a hypothesis."""
    if hypothesis.coupling is not None:
        columns = columns.with_coupling(hypothesis.coupling)
    return columns.with_terms(hypothesis.terms) if hypothesis.terms else columns
