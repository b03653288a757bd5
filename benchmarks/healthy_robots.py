"""Calibrations of healthy robots at the defaults: the simulator with drives drawn at random, all nodes as processes.

The simulator has real-time priority (SCHED_FIFO), like the controller manager of ros2_control or a separate computer.

    PYTHONPATH=benchmarks:test:$PYTHONPATH python benchmarks/healthy_robots.py --runs 60 --load 3

Every run is kept in the folder; a run of the present commit, without changes, is not repeated.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from support.nodes.control_messages import control_messages_environment
from support.nodes.two_links import TRUE_URDF
from tables import ROOT, commit, machine, publish, table

from inertid_ros.core.errors import InertidError
from inertid_ros.nodes import MODULES
from inertid_ros.nodes.tools.processes import SERVING_NODES, Processes, claim_domain
from inertid_ros.simulation.example_robots import PANDA, example_urdf

CONTROLLER = "joint_trajectory_controller"
LONGEST_RUN_S = 600.0
KNOWING_THE_ROBOT = ("simulator", "excitation", "identifier")
BUSY_GAPS = {"fault.gap_rate_hz": 1.0, "fault.gap_s": [0.024, 0.068, 0.39]}
GRAVE = re.compile(r"\[(ERROR|FATAL)\].*?: (.*)|^error: (.*)", re.MULTILINE)


def drawn_robot(seed: int, folder: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a description, the parameters of the simulator, and the parameters of all nodes."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(["Panda", "UR5", "two links"]))
    lag = float(np.exp(rng.uniform(*np.log([0.001, 0.04]))))
    bandwidth = float(np.exp(rng.uniform(*np.log([50.0, min(200.0, 2.0 / lag)]))))
    rate = float(rng.choice([125.0, 250.0, 500.0, 1000.0]))
    noise, play = float(np.exp(rng.uniform(*np.log([1e-5, 3e-4])))), float(rng.uniform(0.0, 1e-3))
    coulomb, busy = float(np.exp(rng.uniform(*np.log([0.003, 0.03])))), bool(rng.random() < 0.5)
    simulator: dict[str, Any] = {
        "state_hz": rate, "perturb": True, "perturbation_seed": seed, "simulation.seed": seed,
        "simulation.controller.rate_hz": rate, "simulation.controller.bandwidth_rad_s": bandwidth,
        "simulation.controller.feed_forward": 1.0 - 0.5 * lag * bandwidth, "simulation.drives.coulomb": coulomb,
        "simulation.sensors.position_noise": noise, "simulation.sensors.play": play, **(BUSY_GAPS if busy else {}),
    }  # fmt: skip
    everywhere: dict[str, Any] = {}
    if name == "Panda":
        simulator["urdf"] = str(example_urdf(PANDA))
        everywhere = {"robot.locked_joint_names": ["panda_finger_joint1"],
                      "robot.locked_joints.panda_finger_joint1": 0.0}  # fmt: skip
    elif name == "UR5":
        simulator["urdf"] = str(example_urdf("ur_description/urdf/ur5_robot.urdf"))
        simulator["start"] = [0.0, -1.5, 1.5, 0.0, 0.5, 0.0]
    else:
        (folder / "robot.urdf").write_text(TRUE_URDF)
        simulator["urdf"] = str(folder / "robot.urdf")
    words = (
        f"{name}, lag {1e3 * lag:.1f} ms, {bandwidth:.0f} rad/s, Coulomb {100 * coulomb:.1f} %, noise {1e3 * noise:.2f}"
        f" mrad, play {1e3 * play:.2f} mrad, {rate:.0f} Hz, gaps {'busy' if busy else 'idle'}"
    )
    return words, simulator, everywhere


def calibrate(seed: int, folder: Path, controller: str) -> dict[str, Any]:
    """Run one calibration and end its processes, also after errors."""
    folder.mkdir(parents=True)
    words, simulator, everywhere = drawn_robot(seed, folder)
    own: Mapping[str, Mapping[str, Any]] = {
        "simulator": {**simulator, "controller": controller},
        "excitation": {"controller": controller},
        "recorder": {"directory": str(folder / "recordings")},
        "identifier": {"output_directory": str(folder / "results")},
        "calibrate": {"output_directory": str(folder / "result"), "tables": False},
    }
    parameters = folder / "parameters.yaml"
    content = {
        f"/**/{name}": {"ros__parameters": {**(everywhere if name in KNOWING_THE_ROBOT else {}), **values}}
        for name, values in own.items()
    }
    parameters.write_text(yaml.safe_dump(json.loads(json.dumps(content))))  # rcl does not read aliases
    run: dict[str, Any] = {"seed": seed, "robot": words, "commit": commit(), "status": "failed", "messages": []}
    begun = time.monotonic()
    try:
        with Processes(folder) as processes:
            for name in (*SERVING_NODES, "calibrate"):
                module = MODULES[name]
                command = [sys.executable, "-m", module, "--ros-args", "--params-file", str(parameters)]
                processes.start(name, ["chrt", "-f", "10", *command] if name == "simulator" else command)
            run["status"] = processes.wait("calibrate", LONGEST_RUN_S)
    except InertidError as error:
        run["messages"].append(str(error).splitlines()[0])
    run["seconds"] = round(time.monotonic() - begun, 1)
    report = folder / "result" / "report.json"
    if report.exists():
        found = json.loads(report.read_text())
        run["verdict"] = found["verdict"]
        run["errors"] = [found["prior"]["validation"]["relative_error"], found["validation"]["relative_error"]]
    for name in ("excitation", "calibrate"):
        log = (folder / f"{name}.log").read_text(errors="replace")
        run["messages"] += [f"{name}: {second or third}" for _, second, third in GRAVE.findall(log)]
    return run


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run processes that compute without end."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def row(run: Mapping[str, Any]) -> list[str]:
    """Table row of a run."""
    errors = " → ".join(f"{100 * error:.2f} %" for error in run.get("errors", []))
    message = run["messages"][0].replace("|", "/")[:200] if run["messages"] else ""
    return [f"{run['seed']}", run["robot"], f"{run['status']}", run.get("verdict", ""), errors, f"{run['seconds']:.0f}",
            message]  # fmt: skip


def interrupt(_number: int, _frame: object) -> None:
    """End all processes as by Ctrl-C."""
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--load", type=int, default=0, help="number of busy processes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run")
    parser.add_argument("--controller", action="store_true", help="name the controller, so that its state is read")
    folder = ROOT / ".build" / "healthy_robots"
    parser.add_argument("--folder", type=Path, default=folder, help="folder of runs and their logs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    folder = options.folder.absolute() / f"load_{options.load}{'_controller' * options.controller}"
    runs = []
    with claim_domain() as domain, busy_processes(options.load):
        os.environ["ROS_DOMAIN_ID"], os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = str(domain), "LOCALHOST"
        if options.controller:
            os.environ.update(control_messages_environment(ROOT / ".pytest_cache" / "control_msgs"))
        for seed in range(options.seed, options.seed + options.runs):
            kept = folder / f"{seed}.json"
            run = json.loads(kept.read_text()) if kept.exists() else {}
            if run.get("commit") != commit() or "changes" in commit():
                subprocess.run(["rm", "-rf", str(folder / str(seed))], check=True)
                run = calibrate(seed, folder / str(seed), CONTROLLER if options.controller else "")
                kept.write_text(json.dumps(run, indent=1) + "\n")
            runs.append(run)
            print(" | ".join(row(run)), flush=True)
    done = sum("errors" in run for run in runs)
    used = sum(run["status"] == 0 for run in runs)
    rows = [row(run) for run in runs]
    header = ("seed", "robot", "status", "verdict", "held-out error, URDF → result", "seconds", "first message")
    named = "given" if options.controller else "not given"
    publish(
        f"healthy-robots-{options.load}{'-controller' * options.controller}",
        f"## Healthy robots, load {options.load}\n\n"
        f"`benchmarks/healthy_robots.py --runs {options.runs} --load {options.load} --seed {options.seed}"
        f"{' --controller' * options.controller}`, {machine()}. The package's simulator with ordinary drives drawn at"
        f" random, at real-time priority, every node at its defaults; the name of the controller is {named}.\n\n"
        f"**{done} of {len(runs)} ended with a result**, {used} accepted.\n\n{table(header, rows)}",
    )


if __name__ == "__main__":
    main()
