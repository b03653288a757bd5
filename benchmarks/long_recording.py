"""Hours at 1 kHz: time and memory of `inertid identify` on one bag, stage by stage.

    PYTHONPATH=benchmarks:test python benchmarks/long_recording.py --minutes 10 60
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rosbags.typesys import Stores, get_typestore
from tables import machine, publish, table

from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.files import mcap_format
from inertid_ros.data.files.bag_reading import PART_SAMPLES
from inertid_ros.data.files.loading import MAX_SAMPLES_AT_ONCE, load_any_length, load_recording
from inertid_ros.data.long_recording import KEPT_PARTS, LongRecording
from inertid_ros.data.messages import layout_of
from inertid_ros.data.preparation.prepare import Preparation
from inertid_ros.identification.identify import identify as identified
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import ForceEquations, equations_of
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

ROBOT = "xarm_description/urdf/xarm7.urdf"
TERMS = ("rotor_inertia", "viscous", "coulomb", "offset")
RATE_HZ, NOISE = 1000, 0.3  # N m
TYPE = "sensor_msgs/msg/JointState"
PART = 10_000  # messages of a chunk
READ = 1 << 24  # bytes
START_NS = 1_700_000_000_000_000_000
STAGES = ("reading", "preparing", "identifying", "validating")
IN_MEMORY = 60.0  # min; longer recordings are not also prepared as a whole
GOAL = {"seconds": 20.0, "memory": 400.0}  # for one hour


def write_bag(file: Path, model: RobotModel, messages: int) -> None:
    """One long motion, in chunks without compression, as `ros2 bag record` writes them."""
    template, offsets = _template(model)
    length = len(template)
    record = np.zeros((PART, 31 + length), dtype=np.uint8)
    record[:, :9] = np.frombuffer(struct.pack("<BQ", mcap_format.MESSAGE, 22 + length), dtype=np.uint8)
    record[:, 9:11] = np.frombuffer(struct.pack("<H", 1), dtype=np.uint8)
    record[:, 31:] = template
    rng = np.random.default_rng(0)
    truth = np.concatenate([perturb(model, rng).ravel(), np.repeat([0.1, 2.0, 1.5, 0.1], model.joints)])
    motion = _Motion(model, rng)
    topic = mcap_format.Topic("/joint_states", TYPE, "")
    with file.open("wb") as out:
        out.write(mcap_format.header())
        for start in range(0, messages, PART):
            count = min(PART, messages - start)
            samples = motion.samples(np.arange(start, start + count) / RATE_HZ)
            effort = ForceEquations(model).predict(truth, samples) + NOISE * rng.standard_normal(samples.q.shape)
            stamps = START_NS + np.arange(start, start + count, dtype=np.int64) * (10**9 // RATE_HZ)
            rows = record[:count]
            rows[:, 15:23] = stamps.astype("<u8").view(np.uint8).reshape(count, 8)
            rows[:, 23:31] = rows[:, 15:23]
            rows[:, 35:39] = (stamps // 10**9).astype("<i4").view(np.uint8).reshape(count, 4)
            rows[:, 39:43] = (stamps % 10**9).astype("<u4").view(np.uint8).reshape(count, 4)
            for name, values in (("position", samples.q), ("velocity", samples.v), ("effort", effort)):
                at = 31 + offsets[name]
                rows[:, at : at + 8 * model.joints] = np.ascontiguousarray(values).view(np.uint8).reshape(count, -1)
            described = mcap_format.schemas_and_channels([topic]) if start == 0 else b""
            content = described + rows.tobytes()
            head = struct.pack("<QQQII", stamps[0], stamps[-1], len(content), 0, 0) + struct.pack("<Q", len(content))
            out.write(struct.pack("<BQ", mcap_format.CHUNK, len(head) + len(content)) + head + content)
        out.write(mcap_format.end(out.tell()))


def _template(model: RobotModel) -> tuple[Array, dict[str, int]]:
    """A serialised joint state, and the offsets of its numbers."""
    store = get_typestore(Stores.ROS2_JAZZY)
    zero = store.types["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    header = store.types["std_msgs/msg/Header"](stamp=zero, frame_id="")
    values = np.zeros(model.joints)
    state = store.types[TYPE](header, list(model.joint_names), values, values, values)
    data = bytes(store.serialize_cdr(state, TYPE))
    return np.frombuffer(data, dtype=np.uint8), {k: at for k, (at, _) in layout_of(data, TYPE).fields.items()}


class _Motion:
    """Sums of sines within a share of every joint's range."""

    def __init__(self, model: RobotModel, rng: np.random.Generator) -> None:
        self._frequency = 2 * np.pi * rng.uniform(0.05, 0.4, (6, model.joints))
        self._amplitude = rng.uniform(0.05, 0.25, self._frequency.shape)
        self._phase = rng.uniform(0, 2 * np.pi, self._frequency.shape)
        self._middle = 0.5 * (np.maximum(model.limits.lower, -3.0) + np.minimum(model.limits.upper, 3.0))

    def samples(self, time: Array) -> Samples:
        angle = time[:, None, None] * self._frequency + self._phase
        q = self._middle + np.sum(self._amplitude * np.sin(angle), axis=1)
        v = np.sum(self._amplitude * self._frequency * np.cos(angle), axis=1)
        a = np.sum(-self._amplitude * self._frequency**2 * np.sin(angle), axis=1)
        every = np.ones(q.shape, dtype=bool)
        return Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0], "long")


def identify(urdf: Path, bag: Path, folder: Path) -> dict[str, float]:
    """Run the command as a user does; return clock and processor time, peak memory, and the times of its stages."""
    command = [sys.executable, "-m", "inertid_ros.cli.main", "identify", str(bag), "--urdf", str(urdf)]
    command += ["--output", str(folder)]
    log, began = folder.with_suffix(".txt"), time.perf_counter()
    with log.open("w") as out:
        running = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=os.environ)
        _, status, used = os.wait4(running.pid, 0)  # of this process only, not the maximum of all
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        sys.exit(log.read_text())
    report = json.loads(next(folder.rglob("report.json")).read_text())
    cpu = used.ru_utime + used.ru_stime
    return {"seconds": seconds, "cpu": cpu, "memory": used.ru_maxrss * 1024 / 1e6, **report["timing"]}


def against_the_whole(urdf: Path, bag: Path) -> tuple[float, float]:
    """Largest differences of samples and parameters between preparation in parts and as a whole, relative to the
    largest values, with equal cutoff, noise and fast speeds."""
    configuration = Configuration()
    model = load_model(urdf, configuration.robot)
    long, whole = load_any_length(bag), load_recording(bag)
    assert isinstance(long, LongRecording)
    dataset = Dataset.screened(model, configuration, [long])
    dataset = dataset.prepared(dataset.cutoff())
    parts = [*dataset.samples(), *dataset.further_samples()]
    parts.sort(key=lambda samples: float(samples.time[0]))
    of_whole = Preparation(whole, model, shared=dataset.parts()[0].preparation.shared).samples(dataset.cutoff_hz)
    apart = [
        np.abs(np.concatenate([getattr(part, name) for part in parts]) - values).max() / np.abs(values).max()
        for name in ("q", "v", "a", "tau")
        for values in [getattr(of_whole, name)]
    ]
    equations = equations_of(model)
    one, other = (identified(model, compress(equations, own)).parameters for own in (parts, [of_whole]))
    return float(max(apart)), float(np.abs(one - other).max() / np.abs(other).max())


def one_pass(file: Path) -> float:
    """Time to read the bytes of a file [s]."""
    began = time.perf_counter()
    with file.open("rb") as content:
        while content.read(READ):
            pass
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, nargs="+", default=[10.0, 60.0])
    parser.add_argument("--bags", help="folder to keep bags for reuse (20 MB per minute)")
    options, rows = parser.parse_args(), []
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "robot.urdf"
        urdf.write_text(Path(example_urdf(ROBOT)).read_text())
        model = load_model(urdf, RobotOptions(drive_terms=TERMS))
        for minutes in options.minutes:
            bag = Path(options.bags or folder) / f"long{minutes:g}.mcap"
            messages = int(60 * minutes * RATE_HZ)
            if not bag.exists():
                write_bag(bag, model, messages)
            through = min(one_pass(bag) for _ in range(3))
            found = identify(urdf, bag, Path(folder) / f"result_{minutes:g}")
            print(found, flush=True)
            stages = [f"{found[stage]:.1f} ({found[stage] / through:.0f})" for stage in STAGES]
            rows.append([
                f"{minutes:g} min", f"{messages:,}", f"{bag.stat().st_size / 1e6:.0f} MB, {through:.2f} s",
                f"{found['seconds']:.1f} ({found['seconds'] / through:.0f})", f"{found['cpu']:.1f}",
                f"{found['memory']:.0f}", *stages, "–",
            ])  # fmt: skip
        # Only now: the peak of a process includes the peak of its parent.
        for minutes, row in zip(options.minutes, rows, strict=True):
            if minutes <= IN_MEMORY:
                bag = Path(options.bags or folder) / f"long{minutes:g}.mcap"
                row[-1] = "{:.0e}, {:.0e}".format(*against_the_whole(urdf, bag))
    header = [
        "length", "messages", "file, one pass", "clock [s]", "processor [s]", "peak [MB]", *STAGES,
        "samples, parameters",
    ]  # fmt: skip
    text = f"""## Long recordings

`inertid identify robot.urdf long.mcap` for an xArm7 at 1 kHz with {len(TERMS)} drive terms per joint;
the time includes loading of libraries and writing of the result. Target for an hour: {GOAL['seconds']:g} s,
{GOAL['memory']:g} MB. Brackets contain multiples of one pass that reads the bytes of the file, from the cache if it
fits. Recordings of more than {MAX_SAMPLES_AT_ONCE:,} samples are read in parts of {PART_SAMPLES:,}, of which
{KEPT_PARTS} are kept. The reading stage goes through the file to find these parts; the identification stage reads all
other parts again. The last column is the largest difference of samples and parameters from a preparation of the whole
recording in memory with equal cutoff, noise and fast speeds, relative to the largest values.

{table(header, rows)}

{machine()}"""
    publish("long-recordings", text)


if __name__ == "__main__":
    main()
