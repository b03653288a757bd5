"""First contact: twenty published robots from ``inertid init`` to a verdict, with the necessary options.

    python benchmarks/first_contact.py [NAME...] [--folder FOLDER] [--again] [--kept]

Robots have the mounting that init proposes; robots with legs hang by their root. MuJoCo's collision engine checks the
plans, independently of the planner's engine. Results are kept in the folder, so that a rerun continues; ``--again``
repeats all visits, ``--kept`` only publishes kept results. Robots of ``robot_descriptions`` are excluded, because this
package downloads at run time.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from studies.first_contact import ADDED, ROBOTS, Visit, visit
from tables import ROOT, machine, publish, table

from inertid_ros.identification.assessment.gate import Verdict

HEADER = (
    "robot", "group", "joints, held", "floor", "init, motion, held-out motion, identify [s]", "conditions",
    "deepest in itself, floor [mm]", "verdict", "held-out error [%], URDF to calibrated", "options and messages",
)  # fmt: skip
_COMMANDS = ("init", "motion1", "motion2", "identify")
_SHOWN = 170  # characters of a line


def row(found: Visit) -> Sequence[object]:
    """One line of the table."""
    seconds = {command["name"]: f"{command['seconds']:.0f}" for command in found.commands}
    depth = [1e3 * max(each[part] for each in found.contacts) for part in ("links", "floor")] if found.contacts else []
    legs = found.floor.startswith("no floor")
    return (
        found.robot,
        found.group,
        f"{found.joints}, {found.held}",
        "none: legs below" if legs else found.floor.partition("floor at ")[2].partition(",")[0],
        ", ".join(seconds.get(name, "–") for name in _COMMANDS),
        ", ".join(f"{value:.3g}" for value in found.conditions) or "–",
        ", ".join(f"{value:.1f}" for value in depth) or "–",
        found.verdict or "–",
        " to ".join(f"{100 * value:.2f}" for value in found.held_out if value is not None) or "–",
        needed(found),
    )


def needed(found: Visit) -> str:
    """Options that the user added, end of an incomplete visit, and messages of all commands."""
    added = [f"added to {name}: `{' '.join(options)}`" for name, options in ADDED.get(found.robot, {}).items()]
    told = dict.fromkeys(line for command in found.commands for line in command["told"])
    deep = dict.fromkeys(each["where"] for each in found.contacts if each["where"])
    design = dict.fromkeys(pair for each in found.contacts for pair in each["by_design"])
    touching = [f"touch in most poses: {', '.join(design)}"] if design else []
    lines = [*added, *([f"ended: {found.ended}"] if found.ended else []), *deep, *touching, *found.reasons[:1], *told]
    return "<br>".join(line if len(line) <= _SHOWN else f"{line[:_SHOWN]} …" for line in lines) or "nothing"


def main() -> None:
    """Visit the robots one after another and publish the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(ROBOTS)}; default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / ".build" / "first_contact", help="for results")
    parser.add_argument("--again", action="store_true", help="repeat visits with kept results")
    parser.add_argument("--kept", action="store_true", help="publish kept results without visits")
    arguments = parser.parse_args()
    visits = []
    for name in arguments.names or ROBOTS:
        kept = arguments.folder / name / "visit.json"
        if arguments.kept and not kept.exists():
            continue
        if arguments.again or not kept.exists():
            found = visit(name, kept.parent)
            kept.write_text(json.dumps(asdict(found), indent=1))
        visits.append(Visit(**json.loads(kept.read_text())))
        print(*row(visits[-1]), sep=" | ", flush=True)
    if arguments.names:
        return
    through = [found for found in visits if found.verdict]
    used = [found for found in through if found.verdict != Verdict.REJECT.value]
    free = [found for found in through if found.robot not in ADDED]
    clear = [found for found in through if not any(each["links"] or each["floor"] for each in found.contacts)]
    missing = [name for name in ROBOTS if name not in {found.robot for found in visits}]
    left = f" Not visited yet: {', '.join(missing)}." if missing else ""
    faults = sum(len(command["faults"]) for found in visits for command in found.commands)
    publish(
        "first_contact",
        f"## First contact\n\n`benchmarks/first_contact.py`, {machine()}, load {os.getloadavg()[0]:.1f}."
        f" {len(through)} of {len(visits)} robots of example-robot-data go from `init` to a verdict, {len(free)} of"
        f" them without options; {len(used)} results may be used. {len(clear)} of {len(through)} robots do not"
        " penetrate themselves or the floor in either motion, checked every 2 ms by MuJoCo's collision engine. Links of"
        " one joint may touch; links that touch in most random poses may also touch and are listed. The user saw"
        f" {faults} lines of errors or of numerical libraries. Commands have their defaults, except that the held-out"
        " motion is not improved. True bodies differ from the URDF by up to 40 %; friction, rotors, offsets and noise"
        f" are not in the URDF.{left}\n\n"
        + table(HEADER, [row(found) for found in visits]),
    )


if __name__ == "__main__":
    main()
