"""Speed scaling of a controller found by progress: which drives are taken for it, and how far a robot jumps."""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from support.scaled_motion import CYCLE_S, LIMITS, Drives, Observed, Scaling, Sensors, late_stamps, move, ramps
from support.scaled_motion import table as horizon_table
from tables import machine, publish, table

DRIVES = {
    "ideal": Drives(),
    "lag of 20 ms": Drives(lag=0.02),
    "lag of 50 ms": Drives(lag=0.05),
    "lag of 100 ms": Drives(lag=0.1),
    "two lags of 25 ms": Drives(lag=0.025, order=2),
    "delay of 30 ms": Drives(delay=0.03),
    "lag of 20 ms, play of 3 mrad": Drives(lag=0.02, play=0.003),
    "lag of 50 ms, play of 3 mrad, sag of 20 mrad": Drives(lag=0.05, play=0.003, sag=0.02),
}
SENSORS: dict[str, Callable[[int], Sensors]] = {
    "500 Hz": lambda _seed: Sensors(noise=1e-5),
    "125 Hz, noise of 0.3 mrad": lambda _seed: Sensors(period=0.008, noise=3e-4),
    "100 Hz, steps of 1.5 mrad": lambda _seed: Sensors(period=0.01, resolution=1.5e-3),
    "500 Hz, stamps late by 4 ms": lambda seed: Sensors(late=late_stamps(np.random.default_rng(seed))),
}
SCALINGS: dict[str, Callable[[float], Scaling]] = {
    "0.5 from the start": lambda _at: lambda _time: 0.5,
    "to 0 at once": lambda at: lambda time: 1.0 if time < at else 0.0,
    "to 0.5 at once": lambda at: lambda time: 1.0 if time < at else 0.5,
    "to 0.9 at once": lambda at: lambda time: 1.0 if time < at else 0.9,
    "to 0.97 at once": lambda at: lambda time: 1.0 if time < at else 0.97,
    "ramps 1, 0.5, 0, 1": lambda at: ramps(
        (at, 1.0), (at + 0.2, 0.5), (at + 0.8, 0.5), (at + 1.0, 0.0), (at + 1.6, 0.0), (at + 1.8, 1.0)
    ),
}
SCALED_DRIVES = ("ideal", "lag of 20 ms", "lag of 50 ms")


def observe(drives: str, sensors: str, scaling: Scaling, seed: int) -> Observed:
    """A random motion."""
    return move(horizon_table(seed), scaling, DRIVES[drives], SENSORS[sensors](seed), seed=seed)


def at_full_speed(seeds: Sequence[int]) -> str:
    """How many motions are stopped although nothing is scaled."""
    rows = []
    for drives in DRIVES:
        motions = {name: [observe(drives, name, lambda _time: 1.0, seed) for seed in seeds] for name in SENSORS}
        stopped = [sum(bool(observed.node.fault) for observed in several) for several in motions.values()]
        rows.append((drives, *(f"{count} of {len(seeds)}" for count in stopped)))
    return table(("drives", *SENSORS), rows)


def scaled(seeds: Sequence[int]) -> str:
    """How many motions are stopped where the speed is scaled, and what the robot did until it stood."""
    rows, moments = [], np.random.default_rng(0).uniform(2.0, 7.0, len(seeds))
    for drives in SCALED_DRIVES:
        for name, scaling in SCALINGS.items():
            motions = [
                observe(drives, sensors, scaling(at), seed)
                for seed, at in zip(seeds, moments, strict=True)
                for sensors in SENSORS
            ]
            stopped = sum(bool(observed.node.fault) for observed in motions)
            speed = max(float((observed.joint_speed / LIMITS.velocity).max()) for observed in motions)
            jump = max(float((observed.speed - LIMITS.velocity).max()) * CYCLE_S for observed in motions)
            rows.append((drives, name, f"{stopped} of {len(motions)}", f"{speed:.2f}", f"{1e3 * max(jump, 0.0):.1f}"))
    return table(("drives", "scaling", "stopped", "largest speed of a joint / limit", "largest jump [mrad]"), rows)


def main() -> None:
    """Publish both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="random motions of two joints")
    seeds = range(1, parser.parse_args().seeds + 1)
    text = (
        "## Speed scaling\n\n"
        f"`benchmarks/speed_scaling.py --seeds {len(seeds)}`, {machine()}. Random motions of two joints (limits 1.5"
        " rad/s, 8 rad/s²) under a simulated controller of 500 Hz. No scaling, so no motion should be stopped:\n\n"
        f"{at_full_speed(seeds)}\n\n"
        "A scaling that nobody tells, with all sensors of the table above. A jump is what the controller's reference"
        f" moves in one cycle beyond the velocity limit:\n\n{scaled(seeds)}"
    )
    publish("speed-scaling", text)


if __name__ == "__main__":
    main()
