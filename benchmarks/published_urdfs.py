"""URDFs as published: every one of example-robot-data is planned for without options, and what it needed is told.

Plans are short searches, for the table shows what happens and not how good a motion gets; the xArm7 is planned for with
default options. Beside this, robots whose right angles are rounded are planned for again with exact ones.

    python benchmarks/published_urdfs.py [NAME...]
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import attrs
import numpy as np
from lxml import etree
from tables import machine, publish, table

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.core.log_once import log_once
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.inspection import Inspection, inspect_plan
from inertid_ros.excitation.limits.motion_limits import motion_limits
from inertid_ros.excitation.planner import plan_excitation
from inertid_ros.excitation.planning.start_pose import rest_pose
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import example_urdf

DEFAULT = ExcitationOptions(workers=1, time_limit_s=600.0)
QUICK = attrs.evolve(
    DEFAULT, duration_s=10.0, starts=1, improved=1, iterations=2, criterion_samples=40, constraint_samples=40,
    knot_step_s=0.05,
)
ROUNDED = 2e-5  # rad
XARM = "xarm_description/urdf/xarm7.urdf"
SHOWN = 150  # characters of a message


@dataclass
class Outcome:
    """What became of one URDF."""

    joints: int
    seconds: float
    condition: float
    told: tuple[str, ...]
    error: str = ""


def collection() -> Path:
    return Path(example_urdf(XARM)).parents[2]


def planned(urdf: Path | str, options: ExcitationOptions) -> Inspection:
    """What ``inertid excite`` does without further options."""
    model = load_model(urdf)
    limits = motion_limits(model)
    constraints = motion_constraints(model, limits, options)
    middle = 0.5 * (limits.lower + limits.upper)
    start = rest_pose(model, limits, constraints, middle, np.zeros(len(middle), dtype=bool))
    plan = plan_excitation(model, limits, start, options)
    constraints = motion_constraints(model, limits, options)
    check_plan(plan, model, limits, constraints=constraints)
    return inspect_plan(plan, model, limits, constraints)


@contextmanager
def messages() -> Iterator[list[str]]:
    """Warnings that are logged meanwhile."""
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


def outcome(urdf: Path | str, options: ExcitationOptions) -> Outcome:
    began, error, joints, condition = time.monotonic(), "", 0, np.nan
    with messages() as told:
        try:
            inspection = planned(urdf, options)
            joints, condition = len(inspection.plan.joint_names), inspection.condition_number
            told += [str(finding) for finding in inspection.findings]
        except InertidError as problem:
            error = str(problem).removeprefix(f"{urdf}: ")
    return Outcome(joints, time.monotonic() - began, condition, tuple(told), error)


def exact_angles(text: str) -> str:
    """The URDF with exact right angles in place of rounded ones; the same text where there are none."""
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


def short(message: str) -> str:
    return message if len(message) <= SHOWN else f"{message[:SHOWN]} …"


def main() -> None:
    chosen = sys.argv[1:]
    files = [path for path in sorted(collection().rglob("*.urdf")) if not chosen or path.stem in chosen]
    rows, plans, rounded = [], 0, []
    for path in files:
        found = outcome(path, DEFAULT if path.name == "xarm7.urdf" else QUICK)
        plans += not found.error
        needed = [found.error] if found.error else list(found.told)
        print(path.stem, f"{found.condition:.4g}", f"{found.seconds:.1f} s", *needed, sep="\n    ", flush=True)
        rows.append((
            path.relative_to(collection()).parts[0].removesuffix("_description"), path.stem, found.joints or "–",
            f"{found.condition:.4g}" if not found.error else "no plan", "<br>".join(map(short, needed)) or "nothing",
        ))  # fmt: skip
        text = path.read_text()
        exact = exact_angles(text)
        if exact != text and not found.error:
            twin = path.parent  # meshes are found from there
            with_exact = outcome_of_text(exact, twin, DEFAULT if path.name == "xarm7.urdf" else QUICK)
            ratio = found.condition / with_exact.condition
            print(f"    exact angles: {with_exact.condition:.4g}, ratio {ratio:.4f}", flush=True)
            rounded.append((path.stem, f"{found.condition:.4g}", f"{with_exact.condition:.4g}", f"{ratio:.4f}"))
    if chosen:
        return
    text = (
        f"## URDFs as published\n\n`benchmarks/published_urdfs.py`, {machine()}. {plans} of {len(files)} URDFs of"
        " example-robot-data end with a plan without any option, the others with one line. Searches are short"
        f" ({QUICK.iterations} iterations from one start of {QUICK.starts}) but for the xArm7.\n\n"
        + table(("folder", "URDF", "joints", "condition number", "what is told"), rows)
        + "\n\nRobots whose right angles are rounded, planned for with exact ones too:\n\n"
        + table(("URDF", "condition number", "with exact angles", "ratio"), rounded)
    )
    publish("published_urdfs", text)


def outcome_of_text(text: str, folder: Path, options: ExcitationOptions) -> Outcome:
    """The same of a text, with meshes from a folder on."""
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "exact.urdf"
        path.write_text(text)
        mesh_options = attrs.evolve(
            options, collision=attrs.evolve(options.collision, mesh_folders=tuple(map(str, folder.parents)))
        )
        return outcome(path, mesh_options)


if __name__ == "__main__":
    main()
