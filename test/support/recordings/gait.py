"""A person who walks over two force plates (human_gait2354), as samples of segments."""

from pathlib import Path

import numpy as np

from inertid_ros.core.samples import Samples
from inertid_ros.regressors.whole_body_equations import BodySegmentEquations, body_segment_model, segment_samples

FILE = Path("human_gait2354") / "gait2354_walk1_60hz.npz"


def read_gait(folder: Path) -> tuple[BodySegmentEquations, Samples]:
    """Equations of the twelve segments, with the file's own parameters as the prior, and its 73 samples."""
    with np.load(folder / FILE) as file:
        d = {key: file[key] for key in file.files}
    feet = [(d[f"force_{side}"], d[f"cop_{side}"], d[f"moment_{side}"]) for side in "rl"]
    force = sum(f for f, _, _ in feet)
    moment = sum(m + np.cross(cop, f) for f, cop, m in feet)
    model = body_segment_model("gait2354", [str(name) for name in d["bodies"]], d["phi_model"], d["gravity"])
    wrench = (force, moment, np.zeros_like(force))
    motion = ((d["R"], d["p"]), (d["v"], d["w"]), (d["a"], d["alpha"]))
    return BodySegmentEquations(model), segment_samples(d["t"], *motion, wrench, "walk1")


def held_out(samples: Samples, start: float, stop: float) -> tuple[list[Samples], Samples]:
    """Everything but a stretch, given by shares of the recording, and the stretch."""
    first, last = round(start * len(samples)), round(stop * len(samples))
    pieces = [samples.select(slice(0, first)), samples.select(slice(last, len(samples)))]
    return [piece for piece in pieces if len(piece)], samples.select(slice(first, last))
