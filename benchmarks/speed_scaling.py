"""Speed scaling of a controller found by progress: which drives are taken for it, and how far a robot jumps."""

import argparse
from dataclasses import dataclass

import numpy as np
from support.scaled_motion import LIMITS, Drives, Sensors, late_stamps, move, ramps, table

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
SENSORS = {
    "500 Hz": lambda _seed: Sensors(noise=1e-5),
    "125 Hz, noise of 0.3 mrad": lambda _seed: Sensors(period=0.008, noise=3e-4),
    "100 Hz, steps of 1.5 mrad": lambda _seed: Sensors(period=0.01, resolution=1.5e-3),
    "500 Hz, some stamps late by 4 ms": lambda seed: Sensors(late=late_stamps(np.random.default_rng(seed))),
}
SCALINGS = {
    "0.5 from the start": lambda _at: lambda _time: 0.5,
    "to 0": lambda at: lambda time: 1.0 if time < at else 0.0,
    "to 0.5": lambda at: lambda time: 1.0 if time < at else 0.5,
    "to 0.9": lambda at: lambda time: 1.0 if time < at else 0.9,
    "to 0.97": lambda at: lambda time: 1.0 if time < at else 0.97,
    "1, 0.5, 0, 1": lambda at: ramps(
        (at, 1.0), (at + 0.2, 0.5), (at + 0.8, 0.5), (at + 1.0, 0.0), (at + 1.6, 0.0), (at + 1.8, 1.0)
    ),
}


@dataclass(frozen=True)
class Outcome:
    found: bool
    speed: float  # of the joints, over the limit
    jump: float  # of the controller's reference between two cycles, beyond what the limit allows [rad]
    fault: str


def outcome(drives: str, sensors: str, scaling, seed: int) -> Outcome:
    observed = move(table(seed), scaling, DRIVES[drives], SENSORS[sensors](seed), seed=seed)
    return Outcome(
        "commanded speed" in observed.node.fault,
        float((observed.joint_speed / LIMITS.velocity).max()),
        float(((observed.speed - LIMITS.velocity) * 0.002).max()),
        observed.node.fault,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, parser.parse_args().seeds + 1)
    rows = []
    for drives in DRIVES:
        for sensors in SENSORS:
            results = [outcome(drives, sensors, lambda _time: 1.0, seed) for seed in seeds]
            rows.append((drives, sensors, sum(result.found for result in results), len(results)))
            print(*rows[-1], {result.fault[:60] for result in results if result.fault}, flush=True)
    for drives in list(DRIVES)[:3]:
        for name, scaling in SCALINGS.items():
            at = np.random.default_rng(0).uniform(2.0, 7.0, len(seeds))
            results = [
                outcome(drives, sensors, scaling(at[seed - 1]), seed) for seed in seeds for sensors in SENSORS
            ]
            found = sum(result.found for result in results)
            print(drives, name, found, len(results), f"{max(r.speed for r in results):.2f} {1e3 * max(r.jump for r in results):.1f} mrad", flush=True)


if __name__ == "__main__":
    main()
