"""URDFs as published: plan for every URDF of example-robot-data without options, and list the messages.

Searches are short, because the table is about outcomes and not about the quality of motions; the xArm7 has default
options. In addition, robots with rounded right angles are planned again with exact angles.

    python benchmarks/published_urdfs.py [NAME...]
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import attrs
import numpy as np
from lxml import etree
from studies.floor_distance import closest_to_floor
from tables import machine, publish, table

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.errors import InertidError, log_once
from inertid_ros.excitation.constraints.clearance import ClearanceConstraint
from inertid_ros.excitation.constraints.collision_objects import FLOOR
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints, rest_pose, surroundings
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.excitation.planning.inspection import Inspection, inspect_plan
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

DEFAULT = ExcitationOptions(workers=1, time_limit_s=600.0)
QUICK = attrs.evolve(
    DEFAULT, duration_s=10.0, starts=1, improved=1, iterations=2, criterion_samples=40, constraint_samples=40,
    knot_step_s=0.05,
)
ROUNDED = 2e-5  # rad
REPLANNED = 8  # largest number of joints for a second plan
MANY = 8  # largest number of joints for self-collision in short searches; larger robots: at the start only
XARM = "xarm_description/urdf/xarm7.urdf"
STILL_M = 1e-4  # shapes that turn in place, except for rounded angles, keep the distance of their mounting
SHOWN = 150  # characters of a message


@dataclass
class Outcome:
    """Result of one URDF."""

    seconds: float
    told: tuple[str, ...]
    inspection: Inspection | None = None
    error: str = ""
    floor: str = "none"

    @property
    def condition(self) -> float:
        return np.nan if self.inspection is None else self.inspection.condition_number


def collection() -> Path:
    return Path(example_urdf(XARM)).parents[2]


def planned(model: RobotModel, options: ExcitationOptions) -> Inspection:
    """Plan as ``inertid excite`` without further options."""
    limits = motion_limits(model)
    constraints = motion_constraints(model, limits, options)
    middle = 0.5 * (limits.lower + limits.upper)
    start = rest_pose(model, limits, constraints, middle, np.zeros(len(middle), dtype=bool))
    if model.joints > MANY and options is not DEFAULT:
        options = attrs.evolve(options, collision=attrs.evolve(options.collision, self_collision=False))
    plan = plan_excitation(model, limits, start, options)
    constraints = motion_constraints(model, limits, options)
    check_plan(plan, model, limits, constraints=constraints)
    return inspect_plan(plan, model, limits, constraints)


@contextmanager
def messages() -> Iterator[list[str]]:
    """Collect logged warnings."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    log_once.cache_clear()
    logger, handler = logging.getLogger("inertid_ros"), Collector(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def outcome(urdf: Path, options: ExcitationOptions) -> Outcome:
    began, error, inspection, floor = time.monotonic(), "", None, "none"
    with messages() as told:
        try:
            model = load_model(urdf)
            inspection = planned(model, options)
            seconds = time.monotonic() - began
            told += [str(finding) for finding in inspection.findings]
            floor = floor_kept(urdf, model, inspection.plan, options)
        except InertidError as problem:
            seconds = time.monotonic() - began
            error = str(problem).removeprefix(f"{urdf}: ")
    return Outcome(seconds, tuple(told), inspection, error, floor)


def floor_kept(urdf: Path, model: RobotModel, plan: Plan, options: ExcitationOptions) -> str:
    """Smallest distance from the assumed floor by Coal, separately for links that are close to it by design."""
    limits = motion_limits(model)
    floor = surroundings(model, limits, options).floor_m
    if not np.isfinite(floor):
        return "no floor"
    pairs = ClearanceConstraint(model, limits, options.collision, floor).close_by_design
    by_design = {link for pair in pairs if FLOOR in pair for link in pair}
    shapes = closest_to_floor(urdf, collection().parents[1], plan, model.options.locked_joints, floor)
    moving = [(link, shape) for (link, _), shape in shapes.items() if shape.farthest - shape.distance > STILL_M]
    kept, near = (
        min((shape.distance for link, shape in moving if (link in by_design) == designed), default=np.nan)
        for designed in (False, True)
    )
    return f"{1e3 * kept:.1f}" + (f"; by design {1e3 * near:.1f}" if np.isfinite(near) else "")


def exact_angles(text: str) -> str:
    """URDF with exact right angles in place of rounded angles; unchanged text without rounded angles."""
    root, changed = etree.fromstring(text.encode()), False
    for origin in root.iterfind("joint/origin"):
        angles = [float(angle) for angle in (origin.get("rpy") or "0 0 0").split()]
        exact = [np.round(angle / (np.pi / 2)) * (np.pi / 2) for angle in angles]
        near = [1e-12 < abs(a - b) < ROUNDED for a, b in zip(angles, exact, strict=True)]
        if any(near):
            chosen = (b if rounded else a for a, b, rounded in zip(angles, exact, near, strict=True))
            origin.set("rpy", " ".join(repr(float(angle)) for angle in chosen))
            changed = True
    return etree.tostring(root, encoding="unicode") if changed else text


def with_exact_angles(path: Path, found: Inspection, options: ExcitationOptions) -> tuple[str, ...]:
    """Condition numbers with exact angles: of the given plan, and of a new plan if that is quick."""
    exact = replace(load_model(exact_angles(path.read_text())), folder=path.parent)
    criterion = make_criterion(exact, motion_limits(exact))
    same = criterion.along(found.plan).condition_number
    few = exact.joints <= REPLANNED
    numbers = [found.condition_number, same, *([planned(exact, options).condition_number] if few else [])]
    ratios = [number / found.condition_number for number in numbers[1:]]
    shown = [f"{number:.4g}" for number in numbers] + ["–"] * (not few)
    return (path.stem, *shown, ", ".join(f"{ratio:.4f}" for ratio in ratios))


def short(message: str) -> str:
    return message if len(message) <= SHOWN else f"{message[:SHOWN]} …"


def main() -> None:
    chosen = sys.argv[1:]
    files = [path for path in sorted(collection().rglob("*.urdf")) if not chosen or path.stem in chosen]
    rows, plans, rounded = [], 0, []
    for path in files:
        found = outcome(path, QUICK)
        needed = list(found.told) + [found.error] * bool(found.error)
        print(path.stem, f"{found.condition:.4g}", f"{found.seconds:.1f} s", *needed, sep="\n    ", flush=True)
        folder = path.relative_to(collection()).parts[0].removesuffix("_description")
        told = "<br>".join(map(short, needed)) or "nothing"
        if found.inspection is None:
            rows.append((folder, path.stem, "–", "no plan", "–", told))
            continue
        plans += 1
        joints = len(found.inspection.plan.joint_names)
        rows.append((folder, path.stem, joints, f"{found.condition:.4g}", found.floor, told))
        if exact_angles(path.read_text()) != path.read_text():
            rounded.append(with_exact_angles(path, found.inspection, QUICK))
            print("    exact angles", *rounded[-1][1:], flush=True)
    if chosen:
        return
    text = (
        f"## URDFs as published\n\n`benchmarks/published_urdfs.py`, {machine()}. {plans} of {len(files)} URDFs of"
        " example-robot-data end with a plan without options, all further URDFs with a one-line message. Searches are"
        f" short ({QUICK.duration_s:g} s of motion, {QUICK.iterations} iterations from one start; self-collision of"
        f" robots of more than {MANY} joints at the start only), so condition numbers are for poor motions. Distances"
        " from the assumed floor are for shapes with changing height, by Pinocchio's own model of the"
        f" shapes and Coal, at 1 kHz. The required distance is {1e3 * QUICK.collision.obstacle_clearance_m:g} mm;"
        " links that are always closer are only required not to touch the floor (by design).\n\n"
        + table(("folder", "URDF", "joints", "condition number", "closest to the floor [mm]", "messages"), rows)
        + "\n\nRobots with rounded right angles, and with exact angles:\n\n"
    )
    header = ("URDF", "condition number", "same plan, exact angles", "plan for exact angles", "ratios")
    publish("published_urdfs", text + table(header, rounded))
    xarm = collection() / XARM
    name, *figures = with_exact_angles(xarm, planned(load_model(xarm), DEFAULT), DEFAULT)
    publish("published_urdfs", text + table(header, [(f"{name}, default options", *figures), *rounded]))


if __name__ == "__main__":
    main()
