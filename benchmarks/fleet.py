"""Fleets: throughput, what killed workers and clients cost, what one new bag costs, and what is found.

PYTHONPATH=benchmarks:test python benchmarks/fleet.py --robots 200 --bags 10
PYTHONPATH=benchmarks:test python benchmarks/fleet.py --robots 8 --bags 6     # a minute
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet
from long_recording import ROBOT, TERMS, write_bag
from studies.simulated_fleet import BAD, SimulatedFleet
from tables import machine, publish, table

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import RobotOptions
from inertid_ros.fleet.jobs import bag_job, fleet_configuration
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import example_urdf

YEAR_S = 365.25 * 86400
LONG_S = 600.0  # of the bag that the estimate on paper is made with
THROUGHPUT_ROBOTS = 10
FLEET, UTILISATION = 10_000, 0.7


def command(catalogue: Path, output: Path, workers: int) -> list[str]:
    """The command line of a fleet."""
    run = [sys.executable, "-m", "inertid_ros.cli.main", "fleet", str(catalogue), "--output", str(output), "--json"]
    return [*run, "--workers", str(workers)]


def run(catalogue: Path, output: Path, workers: int) -> dict[str, Any]:
    """Results of a whole run, with its seconds by the clock; ends the study where the command fails."""
    began = time.perf_counter()
    done = subprocess.run(command(catalogue, output, workers), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or "the fleet failed")
    return {**json.loads(done.stdout), "clock": time.perf_counter() - began}


def stored(output: Path) -> int:
    """Results of bags that are on disk."""
    return len(list((output / "bags").glob("??/*/summary.json")))


def workers_of(client: int) -> list[psutil.Process]:
    """Worker processes of a client."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(client).children(recursive=True)
        return [child for child in children if any("spawn_main" in part for part in _arguments(child))]
    return []


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def killed_run(catalogue: Path, output: Path, bags: int) -> dict[str, int]:
    """Start a run, kill a worker after a quarter of the bags and the client after half; what was there then."""
    with tempfile.TemporaryFile() as said:
        client = subprocess.Popen(command(catalogue, output, 2), stdout=said, stderr=said)
        found = {"at_worker": -1, "at_client": -1, "orphans": 0}
        while client.poll() is None:
            count = stored(output)
            if found["at_worker"] < 0 and count >= bags // 4:
                workers_of(client.pid)[0].kill()
                found["at_worker"] = count
            elif count >= bags // 2:
                left = workers_of(client.pid)
                client.kill()
                client.wait()
                found["at_client"] = stored(output)
                _, alive = psutil.wait_procs(left, timeout=60)
                found["orphans"] = len(alive)
                break
            time.sleep(0.2)
    return found


def drift_found(fleet: SimulatedFleet, output: Path) -> dict[str, float]:
    """Shares of the trends of Coulomb friction: truth within the interval, found, and of others found."""
    rows = pyarrow.parquet.read_table(output / "drift.parquet").to_pylist()
    rates = {
        (robot.serial, f"{joint}.coulomb"): rate
        for robot in fleet.robots
        for joint, rate in zip(fleet.model.joint_names, robot.rates, strict=True)
    }
    trends = [row for row in rows if (row["serial"], row["parameter"]) in rates]
    others = [row for row in rows if (row["serial"], row["parameter"]) not in rates]
    within = [row["trend_low"] <= rates[row["serial"], row["parameter"]] <= row["trend_high"] for row in trends]
    still = [row["trend_low"] <= 0.0 <= row["trend_high"] for row in others]
    return {
        "trends": len(trends),
        "within": float(np.mean(within)),
        "named": float(np.mean([row["drifting"] for row in trends])),
        "others": len(others),
        "others_within": float(np.mean(still)),
        "others_named": sum(row["drifting"] for row in others),
        "changed": sum(row["changed"] for row in rows),
    }


def throughput(folder: Path, bags: int) -> list[list[str]]:
    """Bags a second with one and two workers, each on an empty output, and what else the machine did meanwhile."""
    fleet = SimulatedFleet(folder / "small", THROUGHPUT_ROBOTS, bags)
    catalogue, rows, first = fleet.write(), [], 0.0
    for workers in (1, 2):
        output = folder / f"throughput_{workers}"
        found = run(catalogue, output, workers)
        rate, load = found["bags"] / found["seconds"]["bags"], os.getloadavg()[0]
        first = first or rate
        processor = sum(row["seconds_processor"] for row in _bags(output)) / found["bags"]
        rows.append([str(workers), f"{rate:.2f}", f"{rate / first:.2f}", f"{processor:.2f}", f"{load:.1f}"])
    return rows


def _bags(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(output / "bags.parquet").to_pylist()
    return rows


def long_bag(folder: Path) -> dict[str, float]:
    """Seconds of the processor and bytes of one long bag of a seven-joint arm at 1 kHz, and of its result."""
    urdf = Path(example_urdf(ROBOT)).read_text()
    bag = folder / "long.mcap"
    write_bag(bag, load_model(urdf, RobotOptions(drive_terms=TERMS)), int(1000 * LONG_S))
    began = time.process_time()
    result = bag_job(str(bag), urdf, fleet_configuration(Configuration()))
    return {
        "seconds": time.process_time() - began,
        "reading": result.summary["seconds_reading"],
        "bytes": float(result.summary["bytes"]),
        "result": float(len(result.information) + len(json.dumps(result.summary))),
    }


def on_paper(long: dict[str, float], rest: float) -> str:
    """A fleet of 10,000 robots with a bag of ten minutes a day, from measured costs.

    Parameters
    ----------
    rest : float
        Seconds of a core for a robot after its bags.
    """
    day = FLEET * (long["seconds"] + rest)
    year = 365 * FLEET * long["seconds"]
    rows = [
        ["a day: bags read", f"{FLEET * long['bytes'] / 1e12:.2f} TB, {FLEET * long['bytes'] / 86400 / 1e6:.0f} MB/s"],
        ["a day: results written", f"{FLEET * long['result'] / 1e9:.2f} GB"],
        ["a day: core hours", f"{day / 3600:.0f}"],
        [f"cores that keep up, {100 * UTILISATION:.0f} % busy", f"{np.ceil(day / 86400 / UTILISATION):.0f}"],
        ["with 256 cores: a day's bags in", f"{day / 256 / UTILISATION / 60:.0f} minutes"],
        ["a year from nothing: core hours", f"{year / 3600:,.0f}"],
        ["with 1,024 cores: a year's bags in", f"{year / 1024 / UTILISATION / 3600:.0f} hours"],
    ]
    return table(["10,000 robots, a bag of ten minutes a day", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=200)
    parser.add_argument("--bags", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="empty folder that is kept (default a temporary one)")
    parser.add_argument("--found", action="store_true", help="only what is found, with the results in --folder")
    parser.add_argument("--throughput", action="store_true", help="only the throughput")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if not options.found:
            publish("fleet-throughput", rates(folder, options.bags))
        if not (options.found or options.throughput):
            publish("fleet", study(folder, options.robots, options.bags))
        if not options.throughput:
            publish("fleet-found", found(folder, options.robots, options.bags))


def rates(folder: Path, bags: int) -> str:
    """Throughput as text."""
    header = ["workers", "bags a second", "times one worker", "processor [s] a bag", "load of the machine"]
    return f"""### Throughput of a fleet

{THROUGHPUT_ROBOTS} of these robots, their bags alone. The load counts the processes that want to run, these and others,
on {os.cpu_count()} cores.

{table(header, throughput(folder, bags))}

{machine()}"""


def found(folder: Path, robots: int, bags: int) -> str:
    """What a fleet tells that is simulated, as text; results that the folder has are not computed again."""
    fleet, output = SimulatedFleet(folder / "fleet", robots, bags), folder / "output"
    catalogue = fleet.write()
    run(catalogue, output, 2)
    content, drift = run(catalogue, output, 2), drift_found(fleet, output)
    named = {each["serial"]: each["parameter"] for each in content["outlying"]}
    bad = {serial: parameter for serial, parameter in BAD.items() if serial in {r.serial for r in fleet.robots}}
    outlying = ", ".join(f"{serial} {parameter}" for serial, parameter in sorted(named.items())) or "none"
    rows = [
        ["bad robots", ", ".join(f"{serial} {parameter}" for serial, parameter in bad.items())],
        ["named", outlying],
        ["bad ones named / others named", f"{len(set(named) & set(bad))} of {len(bad)} / {len(set(named) - set(bad))}"],
        ["seconds of a run without changes", f"{content['clock']:.0f}"],
        [f"{drift['trends']} drifting frictions: truth within the interval of 95 %", f"{100 * drift['within']:.1f} %"],
        ["of these named as drifting", f"{100 * drift['named']:.0f} %"],
        [f"{drift['others']} parameters without drift: zero within it", f"{100 * drift['others_within']:.1f} %"],
        ["of these named as drifting, false ones", str(drift["others_named"])],
        ["changes named, all false", str(drift["changed"])],
    ]  # fmt: skip
    return f"""### What is found

The same fleet; R001 has a link that is 25 % heavier, R002 twice the Coulomb friction in a joint, and R003 the centre of
mass of a link shifted by 3 cm.

{table(["", ""], rows)}

{machine()}"""


def study(folder: Path, robots: int, bags: int) -> str:
    """The whole study, as text."""
    fleet, output, every = SimulatedFleet(folder / "fleet", robots, bags), folder / "output", robots * bags
    catalogue = fleet.write()
    killed = killed_run(catalogue, output, every)
    resumed = run(catalogue, output, 2)
    again = run(catalogue, output, 2)
    fleet.record(0, fleet.robots[0], bags)
    counts = {robot.serial: bags + (index == 0) for index, robot in enumerate(fleet.robots)}
    added = run(fleet.write_catalogue(counts), output, 2)
    long = long_bag(folder)
    rest = 2 * sum(resumed["seconds"][stage] for stage in ("robots", "models", "results")) / robots
    rows = [
        [f"bags on disk when the worker was killed, of {every:,}", f"{killed['at_worker']:,}"],
        ["bags on disk when the client was killed", f"{killed['at_client']:,}"],
        ["worker processes left after that", str(killed["orphans"])],
        ["bags computed by the next run", f"{resumed['bags_computed']:,}"],
        ["of these, bags that were there before", f"{resumed['bags_computed'] + killed['at_client'] - every:,}"],
        ["bags used in the end", f"{resumed['bags_used']:,}"],
        ["bags computed by a run without changes", str(again["bags_computed"])],
        ["seconds of that run", f"{again['clock']:.0f}"],
        ["bags computed after one was added", str(added["bags_computed"])],
    ]  # fmt: skip
    return f"""## Fleets

`inertid fleet`: {robots} simulated robots of one model, three joints, {bags} bags each of 8 s at 100 Hz, a month apart;
masses differ by 2 % and friction by 5 % between robots, friction by 1 % between bags, and Coulomb friction drifts by
30 % a year (standard deviations). A worker and the client are killed on the way.
{table(["", ""], rows)}

On paper, from one bag of {LONG_S / 60:g} minutes of an xArm7 at 1 kHz ({long["seconds"]:.1f} s of a core, reading
{long["reading"]:.1f} s of it, {long["bytes"] / 1e6:.0f} MB; its result {long["result"] / 1e3:.0f} kB) and {rest:.2f} s
of a core for each robot after its bags:

{on_paper(long, rest)}

{machine()}"""


if __name__ == "__main__":
    main()
