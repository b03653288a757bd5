"""Outcomes of recordings with each kind of mistake, and of clean recordings, on robots drawn at random.

    PYTHONPATH=benchmarks:test python benchmarks/spoilt_recordings.py [--draws 20] [--clean 200] [--workers 2]
        [--kinds NAME...] [--only KIND SEED]

The seed of a draw gives its robot, joints, magnitudes, motions and noise. Each kind is also applied to each recorded
arm with available data. A line is printed for every draw; Ctrl-C prints the table so far. A draw is wrong if a result
with the verdict use predicts the right torque badly, if a mistake is neither named nor harmless, or if a clean
recording gets an alarm.
"""

import argparse
import logging
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from support.recordings.odd_robots import ODD_ROBOTS
from support.recordings.spoiling import KINDS, Case, ImpossibleMistakeError, Mistake, drawn_mistake
from tables import datasets, machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.robot import CouplingOptions, RobotOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.core.findings import CAUSES
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.identification.identify import identify
from inertid_ros.report.results import CalibrationOutcome
from inertid_ros.robot.model import RobotModel, load_model

CLEAN = "none"
ARMS = ("lwr4", "tx40")
WRIST = {"wrist": CouplingOptions(("joint_5", "joint_6"), (1.0, 1.0))}
HARMLESS_RATIO, HARMLESS_ERROR = 1.5, 0.02  # factor on the clean error; smallest clean error


@dataclass(frozen=True)
class Draw:
    """One draw of a kind, on the named recorded arm or on a random robot."""

    kind: str
    seed: int
    arm: str = ""

    def made(self) -> tuple[Case, Mistake]:
        """The clean case and the mistake; raises ImpossibleMistakeError if a recorded arm lacks the joints."""
        rng = np.random.default_rng([self.seed, zlib.crc32(self.kind.encode())])
        if self.kind in ODD_ROBOTS:
            return ODD_ROBOTS[self.kind](rng)
        if self.arm and (folder := datasets()):
            case = recorded_arms(folder)[self.arm]
            return case, KINDS[self.kind](case, rng)
        return drawn_mistake(self.kind, rng)

    def __str__(self) -> str:
        return f"{self.kind}, {self.arm or self.seed}"


@dataclass(frozen=True)
class Outcome:
    """Result of a draw.

    Attributes
    ----------
    verdict : str
        ``refused`` without a fit.
    error, clean_error : float
        Relative errors of the right held-out torque; NaN without a fit, or if the verdict is not to use it.
    """

    draw: Draw
    robot: str
    drawn: str
    causes: tuple[str, ...]
    verdict: str
    first: str
    notices: frozenset[str]
    message: str
    seconds: float
    error: float = np.nan
    clean_error: float = np.nan

    @property
    def badly_predicted(self) -> bool:
        return self.error > HARMLESS_RATIO * max(self.clean_error, HARMLESS_ERROR)

    @property
    def wrongly_used(self) -> bool:
        return self.verdict == "use" and self.badly_predicted

    @cached_property
    def named(self) -> bool:
        """Whether the first reason or a notice names the cause; for a clean recording, whether alarms are absent."""
        if not self.causes:
            return not self.first and not self.notices & ALARMS
        stated = {cause for cause in self.causes if f"({CAUSES[cause].meaning})" in self.message}
        return bool({self.first, *self.notices, *stated} & set(self.causes))

    @property
    def right(self) -> bool:
        harmless = self.verdict == "use" and bool(self.causes) and not self.badly_predicted
        return not self.wrongly_used and (self.named or harmless)

    def __str__(self) -> str:
        mark = "" if self.right else " (!)" if not self.wrongly_used else " (!!)"
        errors = "" if np.isnan(self.error) else f" | {100 * self.error:.2f} %, clean {100 * self.clean_error:.2f} %"
        told = f"{self.draw} | {self.robot} | {self.drawn} | {self.verdict} | {self.first or '-'}{mark}"
        return f"{told}{errors} | {self.seconds:.1f} s | {self.message[:300]}"


ALARMS = frozenset({
    "second_publisher", "lost_rows", "joined_logs", "limits_unit", "joint_axis", "effort_magnitude", "effort_sign",
    "effort_current", "effort_unit", "coupling", "counterbalance", "load_changed", "position_offset", "absolute_angle",
})  # fmt: skip
"""Causes that are false alarms if they appear as notices on a clean recording."""


def outcome(draw: Draw) -> Outcome | None:
    """Calibrate with all defaults, and judge; None if the mistake is impossible on a recorded arm."""
    logging.disable(logging.WARNING)
    began = time.perf_counter()
    try:
        clean, mistake = draw.made()
    except ImpossibleMistakeError:
        return None
    case = mistake.case

    def judged(verdict: str, first: str, message: str, notices: Iterable[str] = ()) -> Outcome:
        seconds = time.perf_counter() - began
        return Outcome(draw, case.name, mistake.drawn, mistake.causes, verdict, first, frozenset(notices), message,
                       seconds)  # fmt: skip

    try:
        result = calibrate(case.given, case.train, case.held_out)
    except InertidError as error:
        message = str(error)
        cause = next((name for name, cause in CAUSES.items() if f"({cause.meaning})" in message), "")
        return judged("refused", cause or ("held_out_not_new" if "cannot validate" in message else "?"), message)
    gate = result.gate
    first = gate.reasons[0] if gate.reasons else None
    found = judged(
        gate.verdict.value, first.cause if first else "", str(first or ""), (notice.cause for notice in gate.notices)
    )
    if found.verdict != "use":
        return found
    clean = mistake.clean or clean
    right = mistake.right or clean.held_out
    left = held_out_error(result, right)
    clean_error = left if draw.kind == CLEAN else 0.0
    if mistake.case is not clean:
        clean_error = held_out_error(calibrate(clean.given, clean.train, clean.held_out), clean.held_out)
    return replace(found, error=left, clean_error=clean_error)


def held_out_error(result: CalibrationOutcome, right: Sequence[Recording]) -> float:
    """Relative error of the torque that a result predicts."""
    estimate = result.estimate
    samples = [prepare(recording, estimate.model) for recording in right]
    return torque_errors(estimate.equations, estimate.parameters, samples).relative_error


@cache
def recorded_arms(folder: Path) -> dict[str, Case]:
    """The LWR4, and the TX40 with the first 65 % of its recording fitted and the rest held out; by name."""
    return {case.name: case for case in recorded_cases(folder)}


def recorded_cases(folder: Path) -> list[Case]:
    lwr4 = load_model(folder / "kuka_lwr4" / "kuka_lwr4.urdf")
    runs = [load_recording(folder / "kuka_lwr4" / f"run{index}.npz") for index in (1, 2, 3)]
    runs = [replace(run, name=f"run{index}") for index, run in enumerate(runs, start=1)]
    tx40 = load_model(folder / "staubli_tx40" / "tx40_mdh_modified.urdf", RobotOptions(couplings=WRIST))
    whole = replace(load_recording(folder / "staubli_tx40" / "run1_5khz.npz"), name="run1")
    first = whole.time < whole.time[0] + 0.65 * whole.duration
    return [
        # The bodies of the URDF do not explain a third or more of the wrist's torques (0.3 to 1.2 N m).
        _known("lwr4", lwr4, (runs[0], runs[1]), (runs[2],), lwr4.joint_names[:4]),
        _known("tx40", tx40, (replace(whole.select(first), name="first"),),
               (replace(whole.select(~first), name="rest"),), tx40.joint_names),
    ]  # fmt: skip


def _known(
    name: str,
    model: RobotModel,
    train: tuple[Recording, ...],
    held_out: tuple[Recording, ...],
    drives: tuple[str, ...],
) -> Case:
    """A case with the best available bodies: a fit to all its recordings."""
    bodies = identify(model, [prepare(recording, model) for recording in (*train, *held_out)]).bodies
    return Case(name, model, bodies, train, held_out, drives)


def row(kind: str, outcomes: Sequence[Outcome]) -> list[object]:
    verdicts = [outcome.verdict for outcome in outcomes]
    failing = [f"{outcome.draw.arm or outcome.draw.seed}" for outcome in outcomes if not outcome.right]
    return [
        kind, len(outcomes), *map(verdicts.count, ("use", "use with care", "do not use", "refused")),
        sum(outcome.wrongly_used for outcome in outcomes), sum(outcome.right for outcome in outcomes),
        ", ".join(sorted(failing, key=lambda seed: seed.zfill(9))),
    ]  # fmt: skip


def summary(outcomes: Sequence[Outcome]) -> str:
    kinds = [*KINDS, *ODD_ROBOTS]
    by_kind = {kind: [outcome for outcome in outcomes if outcome.draw.kind == kind] for kind in kinds}
    header = ["mistake", "draws", "use", "with care", "do not use", "refused", "wrong use", "right", "wrong seeds"]
    clean, spoilt = by_kind[CLEAN], [outcome for outcome in outcomes if outcome.draw.kind != CLEAN]
    right, wrong = (sum(getattr(outcome, key) for outcome in spoilt) for key in ("right", "wrongly_used"))
    return (
        table(header, [row(kind, some) for kind, some in by_kind.items() if some])
        + f"\n\nOf {len(spoilt)} recordings with a real or apparent mistake, {right}"
        f" ({right / max(len(spoilt), 1):.1%}) have the right outcome, and {wrong} are wrongly accepted."
        f" Of {len(clean)} clean recordings on {len({outcome.robot for outcome in clean})} robots,"
        f" {sum(not outcome.right for outcome in clean)} give a false alarm."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20, help="draws of each kind of mistake")
    parser.add_argument("--clean", type=int, default=200, help="draws without a mistake")
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw of each kind")
    parser.add_argument("--kinds", nargs="*", default=[], help="kinds of mistakes; default: all")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    options = parser.parse_args()
    kinds = options.kinds or [*KINDS, *ODD_ROBOTS]
    draws = [
        Draw(kind, options.first + index)
        for index in range(max(options.draws, options.clean))
        for kind in kinds
        if index < (options.clean if kind == CLEAN else options.draws)
    ]
    arms = ARMS if datasets() else ()
    draws += [Draw(kind, 0, arm) for arm in arms for kind in kinds if kind not in ODD_ROBOTS]
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(options.workers) as pool:
        try:
            for future in as_completed([pool.submit(outcome, draw) for draw in draws]):
                if (found := future.result()) is not None:
                    outcomes.append(found)
                    print(found, flush=True)
        except BaseException as error:
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
    text = f"## Spoilt recordings: outcomes of each kind of mistake\n\n{summary(outcomes)}\n\n"
    text += (
        "A draw is right if its cause is named first or in a notice, or if the result predicts the"
        f" held-out torque within {HARMLESS_RATIO:g} times the error of the clean recording, or"
        f" {HARMLESS_RATIO * HARMLESS_ERROR:.0%}. A clean draw is right if its result is used without an alarm."
        f" {machine()}"
    )
    if options.kinds or len(outcomes) < len(draws) // 2:
        sys.exit(text)
    publish("spoilt-recordings", text)


if __name__ == "__main__":
    main()
