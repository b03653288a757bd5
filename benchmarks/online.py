"""Online identification of a simulated Panda: cost of a sample and of a solution, and detected changes."""

import logging
import sys
import tempfile

import numpy as np
from studies.online_study import Detection, OnlineRun, Stream, detection, holding, losing, online_run, rubbing
from studies.payload_study import CalibratedPanda, random_box
from tables import machine, publish, table

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.monitoring.change_detector import Cause, ChangeDetector
from inertid_ros.monitoring.online_identification import NOTHING_FORGOTTEN
from inertid_ros.monitoring.streams import CausalFilter

ARMS, QUIET_S, CHANGE_S = 10, 61.0, 6.0
FORGETTING = {
    "without forgetting": NOTHING_FORGOTTEN,
    "time constant 5 s": OnlineNodeOptions(time_constant_s=5.0),
    "window 10 s": OnlineNodeOptions(window_s=10.0),
}
AT = 3.0  # s of simulated time


def cost_rows(stream: Stream) -> list[list[str]]:
    """Table rows: one minute with each kind of forgetting."""
    robot, (recording, _) = stream.robot(), stream.record(50, 60.0)
    rows = []
    for name, forgetting in FORGETTING.items():
        run: OnlineRun = online_run(stream, robot, recording, forgetting)
        sample, solve = 1e6 * run.sample, 1e3 * run.solve
        difference = f"{run.difference:.0e}" if forgetting is NOTHING_FORGOTTEN else ""
        rows.append(
            [
                name,
                f"{sample.mean():.0f} ({np.percentile(sample, 99):.0f})",
                f"{np.median(solve):.1f} ({np.percentile(solve, 99):.1f})",
                f"{np.median(run.steps):.0f} ({run.steps.max()})",
                difference,
                "always" if run.consistent else "no",
            ]
        )
    return rows


def changes(stream: Stream, rng: np.random.Generator) -> dict[str, tuple[Detection, Cause]]:
    """Detection of each change of an arm with drifted friction."""
    robot, true = stream.robot(), stream.arm.arm.true
    joint = int(rng.integers(true.joints))
    wanted = {
        "payload of 0.5 kg": (holding(true, random_box(rng, 0.5)), Cause.PAYLOAD),
        "payload of 2 kg": (holding(true, random_box(rng, 2.0)), Cause.PAYLOAD),
        "half of the hand lost": (losing(true, 0.5), Cause.LOST_PART),
        "friction of a joint twice as large": (rubbing(joint, 2.0), Cause.RISING_FRICTION),
    }
    found = {}
    for index, (name, (change, cause)) in enumerate(wanted.items()):
        recording, at = stream.record(60 + index, CHANGE_S, stream.arm.drifted(rng), change, AT)
        found[name] = detection(stream, robot, recording, at), cause
    return found


def quiet(stream: Stream, rng: np.random.Generator, seconds: float) -> tuple[float, int]:
    """Duration [s] and alarms of a stream without change, with drifted friction."""
    recording, _ = stream.record(90, seconds, stream.arm.drifted(rng))
    detector, alarms = ChangeDetector(stream.robot()), 0
    for block in stream.blocks(recording):
        alarms += detector.add(block) is not None
    return recording.duration, alarms


def main() -> None:
    logging.disable(logging.WARNING)
    arms = int(sys.argv[1]) if len(sys.argv) > 1 else ARMS
    told: dict[str, list[tuple[Detection, Cause]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        streams = [Stream(CalibratedPanda(seed, f"{folder}/arm{seed}")) for seed in range(arms)]
        costs = cost_rows(streams[0])
        causal = CausalFilter(streams[0].result.model, streams[0].options)
        peaceful = [quiet(stream, np.random.default_rng([stream.arm.seed, 9]), QUIET_S) for stream in streams]
        for stream in streams:
            for name, found in changes(stream, np.random.default_rng([stream.arm.seed, 8])).items():
                told.setdefault(name, []).append(found)
    rows = []
    for name, own in told.items():
        delays = np.array([each.delay for each, _ in own])
        right = sum(each.settled is not None and each.settled.cause is cause for each, cause in own)
        rows.append(
            [name, len(own), f"{np.median(delays):.2f}", f"{delays.max():.2f}", f"{right} of {len(own)}",
             sum(each.early for each, _ in own)]
        )  # fmt: skip
    header = ["", "sample [µs] (99 %)", "solution [ms] (99 %)", "Newton steps (most)", "difference from batch"]
    header.append("consistent")
    seconds, alarms = (sum(each[k] for each in peaceful) for k in (0, 1))
    block = streams[0].options.block
    latency = causal.delay + block * streams[0].options.period
    text = f"""## Online identification

A simulated Panda (MuJoCo, friction, noise; 200 Hz), calibrated as in "Payloads", makes random motions. The causal
filter has a cutoff of {streams[0].options.cutoff_hz:.1f} Hz and delays by {1e3 * causal.delay:.0f} ms. Samples are
added in blocks of {block}, so that a state is included after {1e3 * latency:.0f} ms at most. The problem is solved
again every {4 * block} samples, starting from the last optimum. Each row is one minute of motion. Columns: processor
time of filter, regressor and update per sample (mean, 99th percentile); processor time of a solution (median, 99th
percentile); its Newton steps (median, largest number). The batch result uses the same causal samples, compressed at
once and solved by the interior point method from the prior. The difference from it is the largest of all parameters,
each relative to the parameter, or to a thousandth of the largest parameter if this is larger.

{
        table(
            [
                "",
                "sample [µs] (99 %)",
                "solution [ms] (99 %)",
                "Newton steps (most)",
                "difference from batch",
                "consistent",
            ],
            costs,
        )
    }

Changes during motion, with a friction drift of 10 % since the calibration, and the default of at most 0.01 false alarms
per hour. Times are from the change to the end of the block that detects it, filter delay included. "Cause right" is
judged once the window contains only samples after the change:

{table(["change", "draws", "detected after, median [s]", "largest", "cause right", "alarms before the change"], rows)}

{seconds:.0f} s of motion without change: {alarms} false alarms.

{machine()}"""
    publish("online", text)


if __name__ == "__main__":
    main()
