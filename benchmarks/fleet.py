"""Fleets: throughput, cost of killed workers and clients, cost of one new bag, and detection of bad robots.

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
LONG_S = 600.0  # length of the bag for the cost estimate
THROUGHPUT_ROBOTS = 10
FLEET, UTILISATION = 10_000, 0.7


def command(catalogue: Path, output: Path, workers: int) -> list[str]:
    """Command line of a fleet."""
    run = [sys.executable, "-m", "inertid_ros.cli.main", "fleet", str(catalogue), "--output", str(output), "--json"]
    return [*run, "--workers", str(workers)]


def run(catalogue: Path, output: Path, workers: int) -> dict[str, Any]:
    """Results and clock time [s] of a whole run; ends the study if the command fails."""
    began = time.perf_counter()
    done = subprocess.run(command(catalogue, output, workers), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or "the fleet failed")
    return {**json.loads(done.stdout), "clock": time.perf_counter() - began}


def stored(output: Path) -> int:
    """Number of bag results on disk."""
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
    """Start a run, kill a worker after a quarter of the bags and the client after half; count bags and processes."""
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
    """Detected trends: coverage and share of named drifts of Coulomb friction, and false names."""
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
    """Bags per second with one and two workers, each with an empty output, and the load of the machine."""
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
    """Processor time [s] and bytes of one long bag of a seven-joint arm at 1 kHz, and of its result."""
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
    """Calculate the costs of 10,000 robots with a bag of ten minutes a day from measured costs.

    Parameters
    ----------
    rest : float
        Processor time per robot after its bags [s].
    """
    day = FLEET * (long["seconds"] + rest)
    year = 365 * FLEET * long["seconds"]
    rows = [
        ["bags read per day", f"{FLEET * long['bytes'] / 1e12:.2f} TB, {FLEET * long['bytes'] / 86400 / 1e6:.0f} MB/s"],
        ["results written per day", f"{FLEET * long['result'] / 1e9:.2f} GB"],
        ["core hours per day", f"{day / 3600:.0f}"],
        [f"cores needed, {100 * UTILISATION:.0f} % busy", f"{np.ceil(day / 86400 / UTILISATION):.0f}"],
        ["time for the bags of a day, 256 cores", f"{day / 256 / UTILISATION / 60:.0f} minutes"],
        ["core hours for the bags of a year", f"{year / 3600:,.0f}"],
        ["time for the bags of a year, 1,024 cores", f"{year / 1024 / UTILISATION / 3600:.0f} hours"],
    ]
    return table(["10,000 robots, a bag of ten minutes a day", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=200)
    parser.add_argument("--bags", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="empty folder to keep (default: temporary)")
    parser.add_argument("--found", action="store_true", help="only the detection, with results in --folder")
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
    header = ["workers", "bags per second", "relative to one worker", "processor [s] per bag", "load of the machine"]
    return f"""### Throughput of a fleet

{THROUGHPUT_ROBOTS} robots of this fleet, bags only. The load counts all runnable processes of the machine,
on {os.cpu_count()} cores.

{table(header, throughput(folder, bags))}

{machine()}"""


def found(folder: Path, robots: int, bags: int) -> str:
    """Text about detection in a simulated fleet; results in the folder are not computed again."""
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
        ["bad robots named / false", f"{len(set(named) & set(bad))} of {len(bad)} / {len(set(named) - set(bad))}"],
        ["seconds of a run without changes", f"{content['clock']:.0f}"],
        [f"{drift['trends']} drifting frictions: truth within the 95 % interval", f"{100 * drift['within']:.1f} %"],
        ["drifting frictions named as drifting", f"{100 * drift['named']:.0f} %"],
        [f"{drift['others']} parameters without drift: zero in interval", f"{100 * drift['others_within']:.1f} %"],
        ["parameters without drift named as drifting", str(drift["others_named"])],
        ["changes named, all false", str(drift["changed"])],
    ]  # fmt: skip
    return f"""### Detection of bad robots

In this fleet, a link of R001 is 25 % heavier, a joint of R002 has twice the Coulomb friction, and the centre of mass of
a link of R003 is shifted by 3 cm.

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
        ["worker processes left afterwards", str(killed["orphans"])],
        ["bags computed by the next run", f"{resumed['bags_computed']:,}"],
        ["bags on disk before, computed again", f"{resumed['bags_computed'] + killed['at_client'] - every:,}"],
        ["bags used by the next run", f"{resumed['bags_used']:,}"],
        ["bags computed by a run without changes", str(again["bags_computed"])],
        ["seconds of a run without changes", f"{again['clock']:.0f}"],
        ["bags computed after one new bag", str(added["bags_computed"])],
    ]  # fmt: skip
    return f"""## Fleets

`inertid fleet`: {robots} simulated robots of one model, three joints, {bags} bags each of 8 s at 100 Hz, a month apart;
masses differ by 2 % and friction by 5 % between robots, friction by 1 % between bags, and Coulomb friction drifts by
30 % a year (standard deviations). A worker and the client are killed during the run.
{table(["", ""], rows)}

Calculated from one bag of {LONG_S / 60:g} minutes of an xArm7 at 1 kHz ({long["seconds"]:.1f} s of a core, with
{long["reading"]:.1f} s of reading, {long["bytes"] / 1e6:.0f} MB; result {long["result"] / 1e3:.0f} kB) and {rest:.2f} s
of a core for each robot after its bags:

{on_paper(long, rest)}

{machine()}"""


if __name__ == "__main__":
    main()
