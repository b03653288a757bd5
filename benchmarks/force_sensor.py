"""Load and bias of a force-torque sensor: coverage of 95 % intervals, and errors, of random tools.

    PYTHONPATH=benchmarks:test python benchmarks/force_sensor.py --draws 200
"""

import argparse

import numpy as np
from support.tool_on_sensor import Tool, identified
from tables import machine, publish, table

MOTIONS = {"slow, 10 Hz for 90 s": (10.0, 90.0, 0.02), "fast, 100 Hz for 12 s": (100.0, 12.0, 0.3)}
QUANTITIES = {
    "mass": ("g", 1e3), "com": ("mm", 1e3), "bias of force": ("mN", 1e3), "bias of torque": ("mN m", 1e3),
    "tilt": ("mrad", 1e3), "inertia": ("g m^2", 1e3)}  # fmt: skip


def errors_of(tool: Tool, motion: tuple[float, float, float]) -> dict[str, np.ndarray]:
    """Errors and standard deviations ``(2, k)`` of each estimated quantity."""
    load = identified(tool.record(*motion))
    names = ("mass", "com", "tilt")
    pairs = {name: (getattr(load, name) - getattr(tool, name), load.deviations[name]) for name in names}
    for part, axes in (("force", slice(0, 3)), ("torque", slice(3, 6))):
        pairs[f"bias of {part}"] = (load.bias - tool.bias)[axes], np.asarray(load.deviations["bias"])[axes]
    if load.inertia is not None:
        upper = np.triu_indices(3)
        pairs["inertia"] = (load.inertia - tool.inertia)[upper], np.asarray(load.deviations["inertia"])[upper]
    return {name: np.array([np.atleast_1d(value) for value in pair]) for name, pair in pairs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="tools per motion (default 200)")
    draws = parser.parse_args().draws
    rows = []
    for title, motion in MOTIONS.items():
        found = [errors_of(Tool(seed), motion) for seed in range(draws)]
        for quantity, (unit, scale) in QUANTITIES.items():
            if values := [errors[quantity] for errors in found if quantity in errors]:
                error, deviation = np.concatenate(values, axis=1)
                inside, median = np.mean(np.abs(error) < 1.96 * deviation), np.median(np.abs(error))
                rows.append((title, quantity, len(values), f"{100 * inside:.1f}", f"{scale * median:.2g} {unit}"))
    text = "## Load and bias of a force-torque sensor\n\n"
    text += "Random tools of 0.3 to 4 kg on a sensor with noise, bias and a tilted mount, in random rotations: true"
    text += " values inside 95 % intervals, and median errors. Inertia is reported if its deviation is small.\n\n"
    text += table(("motion", "quantity", "draws", "inside [%]", "median error"), rows)
    publish("force-sensor", f"{text}\n\n{machine()}")


if __name__ == "__main__":
    main()
