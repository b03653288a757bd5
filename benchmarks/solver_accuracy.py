"""The built-in solver with channel scales ten orders apart, compared with CVXPY and Clarabel.

A channel is a joint's compressed equations, weighted by the reciprocal of its deviation: the weights of a wrist of
1e-5 N m without noise and a shoulder of 100 N m differ by many orders. Data are for a consistent robot, for an
inconsistent robot, or have an error of 1 % in every channel, which exceeds the noise by many orders. Optima without
hard constraints are also measured by the Newton decrement in extended precision, since Clarabel fails on some programs.

    python benchmarks/solver_accuracy.py [--count COUNT]
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from solvers import random_body, random_ellipsoids
from tables import machine, publish, table

from inertid_ros.core.arrays import Array, r_factor
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS
from inertid_ros.identification.solvers.constraints import Constraints, constrained
from inertid_ros.identification.solvers.convex_program import ConvexProgram
from inertid_ros.identification.solvers.coordinates import Coordinates, normalised_coordinates
from inertid_ros.identification.solvers.interior_point import solve
from inertid_ros.identification.solvers.regularizers import Regularization, regularized
from inertid_ros.identification.solvers.third_party import solve_by_cvxpy
from inertid_ros.robot.layout import ParameterLayout

SCALES = -2.0, 8.0  # exponents of ten of the channels' weights
DATA = "consistent robot", "inconsistent robot", "with errors of 1 %"
REGULARIZERS = "entropic", "pullback"
ACCURACY = 1e-6  # relative accuracy of the objective


@dataclass(frozen=True)
class Case:
    """A random convex program with its properties."""

    data: str
    regularizer: str
    ellipsoids: int
    convex_program: ConvexProgram
    start: Array

    @property
    def group(self) -> tuple[str, str, str]:
        return self.data, self.regularizer, str(self.ellipsoids)


def random_case(seed: int) -> Case:
    """A robot of one to seven links, with or without an ellipsoid around each."""
    rng = np.random.default_rng(seed)
    links, data, regularizer = int(rng.integers(1, 8)), rng.choice(DATA), rng.choice(REGULARIZERS)
    names = tuple(f"link{i}" for i in range(links))
    layout = ParameterLayout(names, names)
    drives = layout.size - layout.inertial_size
    bodies = np.array([random_body(rng) for _ in names])
    coordinates = normalised_coordinates(layout, bodies, np.zeros_like(bodies), np.zeros(drives), np.ones(drives))
    R, z = _equations(rng, coordinates, data)
    convex_program = regularized(R, z, layout, Regularization(regularizer, 0.4, 1.0, 20.0))
    ellipsoids = int(rng.integers(0, 2))
    if ellipsoids:
        inside = {name: random_ellipsoids(body, 1) for name, body in zip(names, bodies, strict=True)}
        convex_program = constrained(convex_program, Constraints(inside=inside), coordinates, np.zeros(layout.size))
    start = coordinates.prior.copy()
    start[layout.non_negative] = 1.0
    return Case(str(data), str(regularizer), ellipsoids, convex_program, start)


def _equations(rng: np.random.Generator, coordinates: Coordinates, data: str) -> tuple[Array, Array]:
    """Whitened equations: each channel depends on its joint's drive and the links behind it, with rank three fifths.

    Singular values of a channel lie over four decades.
    """
    layout = coordinates.layout
    truth = coordinates.prior + (0.1 if data != DATA[1] else 1.0) * rng.normal(size=layout.size)
    if data != DATA[1]:
        truth[layout.non_negative] = np.abs(truth[layout.non_negative])
    rows = []
    for joint in range(len(layout.body_names)):
        drive = np.arange(layout.inertial_size + joint, layout.size, len(layout.joints))
        columns = np.concatenate([np.arange(BODY_PARAMETERS * joint, layout.inertial_size), drive])
        rank = int(np.ceil(0.6 * len(columns)))
        left, right = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for size in (rank, len(columns)))
        A = np.zeros((rank, layout.size + 1))
        A[:, columns] = left @ np.diag(10.0 ** -np.linspace(0, 4, rank)) @ right.T
        A[:, -1] = A[:, :-1] @ truth
        if data == DATA[2]:
            A[:, -1] += 0.01 * np.linalg.norm(A[:, -1]) * rng.normal(size=rank) / np.sqrt(rank)
        A *= 10.0 ** rng.uniform(*SCALES)
        A[:, -1] += rng.normal(size=rank)
        rows.append(A)
    whole = r_factor(np.vstack(rows))
    return whole[: layout.size, : layout.size], whole[: layout.size, layout.size]


def extended_decrement(convex_program: ConvexProgram, x: Array) -> float:
    """Half the squared Newton decrement without hard constraints: approximate distance to the optimal objective.

    Computed in extended precision from a QR factorisation of the rows of data and barriers, without normal equations.
    """
    wide = np.longdouble
    rows, targets = [convex_program.R.astype(wide)], [convex_program.z.astype(wide) - convex_program.R.astype(wide) @ x]
    slope = convex_program.linear.astype(wide)
    for body, weight in enumerate(convex_program.body_weights):
        columns = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
        if weight:
            root = np.linalg.inv(np.linalg.cholesky(convex_program.matrices(x)[body]))
            scaled = root @ PSEUDO_INERTIA_BASIS @ root.T
            block = np.zeros((16, len(x)), wide)
            block[:, columns] = np.sqrt(weight) * scaled.reshape(BODY_PARAMETERS, 16).T
            rows.append(block)
            targets.append(np.zeros(16, wide))
            slope[columns] -= weight * np.einsum("kii->k", scaled)
    barrier = np.diag(np.sqrt(convex_program.positive_weights) / x[convex_program.positive])
    rows.append(np.zeros((len(barrier), len(x)), wide))
    rows[-1][:, convex_program.positive] = barrier
    targets.append(np.zeros(len(barrier), wide))
    slope[convex_program.positive] -= convex_program.positive_weights / x[convex_program.positive]
    R = _extended_r_factor(np.column_stack([np.vstack(rows), np.concatenate(targets)]))
    size = len(x)
    triangle, reached = R[:size, :size], R[:size, size]
    missing = slope.copy()
    for k in range(size):  # forward substitution with the transposed triangle
        missing[k] = (missing[k] - triangle[:k, k] @ missing[:k]) / triangle[k, k]
    return float(0.5 * np.sum((reached - missing) ** 2))


def _extended_r_factor(matrix: Array) -> Array:
    """R factor in the precision of the matrix, by Householder reflections."""
    for k in range(min(matrix.shape)):
        v = matrix[k:, k].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        length = v @ v
        if length > 0:
            matrix[k:, k:] -= 2 * np.outer(v, (v @ matrix[k:, k:]) / length)
    return np.triu(matrix[: matrix.shape[1]])


@dataclass(frozen=True)
class Comparison:
    """Outcomes of both solvers; unknown values are NaN.

    Attributes
    ----------
    excess : float
        Objective minus Clarabel's objective, relative to one plus Clarabel's objective.
    decrement : float
        Newton decrement in extended precision, relative to one plus the objective.
    """

    iterations: float = np.nan
    excess: float = np.nan
    decrement: float = np.nan
    failure: str = ""


def compare(case: Case) -> Comparison:
    try:
        ours = solve(case.convex_program, case.start)
    except IdentificationError as error:
        return Comparison(failure=str(error))
    excess = decrement = np.nan
    if case.regularizer == "entropic" and not case.ellipsoids:
        decrement = extended_decrement(case.convex_program, ours.x) / (1 + abs(ours.objective))
    try:
        theirs = solve_by_cvxpy(case.convex_program)
        excess = (ours.objective - theirs.objective) / (1 + abs(theirs.objective))
    except IdentificationError:
        pass  # counts as not solved
    return Comparison(ours.iterations, excess, decrement)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="number of random convex programs")
    count = parser.parse_args().count
    groups: dict[tuple[str, str, str], list[Comparison]] = defaultdict(list)
    for seed in range(count):
        case = random_case(seed)
        found = compare(case)
        groups[case.group].append(found)
        if found.failure or found.excess > ACCURACY or found.decrement > ACCURACY:
            print(seed, *case.group, len(case.start), found, flush=True)
    rows = []
    for group, members in sorted(groups.items()):
        excess = np.array([one.excess for one in members])
        solved = np.isfinite(excess)
        decrement = np.array([one.decrement for one in members])
        rows.append(
            [
                *group,
                len(members),
                sum(bool(one.failure) for one in members),
                int(np.nanmedian([one.iterations for one in members])),
                int(solved.sum()),
                f"{excess[solved].max():.1e}" if solved.any() else "",
                int((excess[solved] < -ACCURACY).sum()),
                f"{np.nanmax(decrement):.1e}" if np.isfinite(decrement).any() else "",
            ]
        )
    header = [
        "data", "regularizer", "ellipsoids per link", "programs", "failures", "iterations", "solved by Clarabel",
        "largest excess over Clarabel", "Clarabel worse", "largest decrement",
    ]  # fmt: skip
    text = (
        "## Solver: channels of very different scale\n\n"
        f"`benchmarks/solver_accuracy.py`: {count} random convex programs of one to seven links; the weights of the"
        " channels span ten orders of magnitude. Excess and decrement are relative to one plus the objective; Clarabel"
        f" counts as worse if its objective is higher by more than {ACCURACY:g}.\n\n"
    )
    publish("solver_accuracy", text + table(header, rows) + f"\n\n{machine()}")


if __name__ == "__main__":
    main()
