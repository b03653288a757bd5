"""Inject each fault of docs/faults.md at ten moments of a motion, and observe the robot from outside.

    PYTHONPATH=benchmarks:test python benchmarks/fault_matrix.py
    PYTHONPATH=benchmarks:test python benchmarks/fault_matrix.py --only "states stop"

Rows of docs/faults.md whose column *how* names an event ("given time: *states stop*") get its figures. The clock is
simulated, so the figures exclude delays of a middleware, of the scheduler and of a real controller.
"""

import argparse
import re
from dataclasses import dataclass, field

from support.excitation.combined_events import ALL_EVENTS, STREAM_PAUSES
from support.excitation.observed_controller import Observed
from support.excitation.streamed_motion import stream
from support.excitation.world import TICK_S, World, prepared
from tables import ROOT, machine

from inertid_ros.nodes.excitation.state_machine import State

PAGE = ROOT / "docs" / "faults.md"
ROW = re.compile(r"^(\|.*given time: \*([^*]+)\*[^|]*\|)[^|]*\|[^|]*\|[^|]*\|[^|]*\|$", re.M)
PAUSE_S = 0.3  # pause of a sender of streamed positions
LONGEST_S = 1.0  # observation of a motion after an event
MOVING = (State.APPROACHING, State.MOVING)


@dataclass
class Figures:
    """Figures of one event over all moments: number of stops, and latest time to the stop command."""

    stop_s: float = 0.0
    stopped: int = 0
    observed: Observed = field(default_factory=Observed)
    violations: list[str] = field(default_factory=list)

    @property
    def cells(self) -> str:
        """Last four cells of a row."""
        seen, broken = self.observed, " **invariant broken**" if self.violations else ""
        stop = f"{1e3 * self.stop_s:.0f}" if self.stopped else "-"
        return f" {stop} | {seen.velocity:.2f} | {seen.acceleration:.2f} | {seen.jerk:.2f}{broken} |"


def inject(event: str, moments: int) -> Figures:
    """Inject an event at moments from the approach to the end of a motion."""
    figures = Figures()
    for moment in range(moments):
        world = World(moment)
        world.motion()
        world.run((moment + 0.5) / moments * world.prepared.table.plan.duration - 0.2)
        begin = world.robot.now
        ALL_EVENTS[event](world, 0.7)
        while world.machine.state in MOVING and world.robot.now < begin + LONGEST_S:
            world.run(TICK_S)
        if world.told_to_stop >= begin:
            figures.stop_s = max(figures.stop_s, world.told_to_stop - begin)
            figures.stopped += 1
        if world.machine.state in MOVING:
            world.disarm()
        figures.observed.join(world.end())
        figures.violations += world.violations
    return figures


def inject_pause(moments: int) -> Figures:
    """Pause a sender of streamed positions: the robot stands abruptly, then continues and brakes."""
    motion, jerk = prepared()
    figures = Figures()
    for moment in range(moments):
        at = (moment + 0.5) / moments * motion.table.plan.duration
        streamed = stream(motion.table, {at: PAUSE_S})
        figures.observed.join(streamed.observed(jerk))
        if "paused" not in streamed.run.fault:
            figures.violations.append(f"a pause at {at:.2f} s is not reported")
    return figures


def main() -> None:
    """Fill the figures of docs/faults.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--moments", type=int, default=10, help="moments per event (default 10)")
    parser.add_argument("--only", nargs="+", metavar="EVENT", help="events to measure; other rows are kept")
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    figures = {}
    for _, event in ROW.findall(text):
        if options.only and event not in options.only:
            continue
        paused = event == STREAM_PAUSES
        figures[event] = inject_pause(options.moments) if paused else inject(event, options.moments)
        print(f"{event}: {figures[event].cells}", *figures[event].violations[:1], flush=True)
    text = ROW.sub(lambda row: row[1] + figures[row[2]].cells if row[2] in figures else row[0], text)
    PAGE.write_text(text, encoding="utf-8")
    print(machine())


if __name__ == "__main__":
    main()
