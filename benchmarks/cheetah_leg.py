"""A quadruped's leg: constraints, regularizers at equal residual, and fixed-base fits tested on a moving base."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from studies.leg_fits import CONSTRAINTS, REGULARIZERS
from studies.leg_study import EXACTNESS, GAMMA, NOISE, PRIOR_SPREAD, Curves, Study
from support.robots.cheetah_leg import read_leg
from tables import FIGURES, datasets, machine, publish, table

from inertid_ros.core.arrays import Array

SIZES = (10, 20, 40, 100, 400, 2000, 7000)
REPEATS = 35
PUBLISHED_GAMMA = 0.2  # [Lee2019]_ fig. 3.10
FEW = 100  # largest number of samples with the published weight
LABELS = {"euclidean": "Euclidean", "riemannian": "Riemannian", "point_mass": "point masses"}
FIGURE = "cheetah_leg.svg"


def main() -> None:
    folder = datasets()
    if folder is None:
        return
    study = Study(read_leg(folder))
    constraints = study.constraints(SIZES, REPEATS)
    regularizers, residuals = study.regularizers(SIZES, REPEATS)
    few = tuple(size for size in SIZES if size <= FEW)
    published, _ = study.regularizers(few, REPEATS, PUBLISHED_GAMMA, ("euclidean", "entropic"))
    floating = study.floating(REPEATS)
    _plot(constraints, regularizers, floating)
    parts = [
        _introduction(),
        _constraints(constraints),
        _regularizers(regularizers, residuals),
        _at_published_weight(published, few),
        _floating(floating),
        machine(),
    ]
    publish("cheetah-leg", "\n\n".join(parts))


def _introduction() -> str:
    return f"""## A quadruped's leg of three links and three rotors

A synthetic twin of the published experiments ([Lee2019]_ figs. 3.10 and 3.12, [Wensing2018]_ fig. 6). True bodies are
the CAD prior with ten point masses, up to half a body's mass in all, added or removed within its bounding ellipsoid
([Lee2019]_ sec. B.2); each of {REPEATS} repeats has a new draw. The parameters published for this leg cannot serve as
the truth: they lie on the border of the cone, and the shank is outside its ellipsoid. Figures are means of the RMS
torque error [N m] over the next ten seconds of the motion, free of noise; bands in the plot contain two thirds of the
repeats.

![held-out errors of the leg](../figures/{FIGURE})"""


def _constraints(curves: Curves) -> str:
    return f"""Constraints; bodies and friction fitted together, white noise of {NOISE:g} N m, prior weight 1e-6
([Wensing2018]_ eq. 25):

{table(("samples", *SIZES), _rows(curves, CONSTRAINTS, SIZES))}"""


def _regularizers(curves: Curves, residuals: dict[int, float]) -> str:
    fitted = ["residual on the fitted samples, all regularizers", *(f"{residuals[size]:.3f}" for size in SIZES)]
    rows = [*_rows(curves, (*REGULARIZERS, "prior"), SIZES), fitted]
    return f"""Regularizers at equal training residual, friction known, bodies inside their ellipsoids. All have the
residual of the entropic regularizer at `gamma = {GAMMA:.1f}`: the variance of the noise over the variance of a geodesic
distance with standard deviation {PRIOR_SPREAD}.

{table(("samples", *SIZES), rows)}"""


def _at_published_weight(curves: Curves, sizes: tuple[int, ...]) -> str:
    return f"""At the published `gamma = {PUBLISHED_GAMMA}`, {GAMMA / PUBLISHED_GAMMA:.0f} times less than this noise
requires, fits of very few samples follow the noise with either distance:

{table(("samples", *sizes), _rows(curves, ("euclidean", "entropic"), sizes))}"""


def _floating(errors: dict[str, Array]) -> str:
    rows = [
        [_label(name), *(f"{m:.3f} ({s:.3f})" for m, s in zip(e.mean(axis=0), e.std(axis=0), strict=True))]
        for name, e in errors.items()
    ]
    return f"""The leg is held by its base and fitted without noise to a residual of {EXACTNESS:g} N m, then tested in a
gallop with a moving base: mean (standard deviation) of RMS errors. Only the distance determines parameters that joint
torque does not identify; their errors appear in the wrench on the body.

{table(("regularizer", "joint torque [N m]", "body force [N]", "body moment [N m]"), rows)}"""


def _rows(curves: Curves, names: tuple[str, ...], sizes: tuple[int, ...]) -> list[list[str]]:
    return [[_label(name), *(f"{np.mean(curves[name, size]):.3f}" for size in sizes)] for name in names]


def _label(name: str) -> str:
    return LABELS.get(name, name)


def _plot(constraints: Curves, regularizers: Curves, floating: dict[str, Array]) -> None:
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "leg", "font.size": 8})
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    nested, equal, moving = figure.subplots(1, 3)
    for axis, curves, names, title in (
        (nested, constraints, CONSTRAINTS, "constraints"),
        (equal, regularizers, (*REGULARIZERS, "prior"), "regularizers at equal residual"),
    ):
        for name in names:
            values = np.array([curves[name, size] for size in SIZES])
            (line,) = axis.loglog(SIZES, values.mean(axis=1), "--" if name == "prior" else "-", label=_label(name))
            low, high = np.percentile(values, (16, 84), axis=1)
            axis.fill_between(SIZES, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
        axis.set(title=title, xlabel="samples", ylabel="held-out RMS torque error [N m]")
        axis.legend()
    reference = floating["euclidean"].mean(axis=0)
    for index, name in enumerate(REGULARIZERS):
        mean, deviation = floating[name].mean(axis=0) / reference, floating[name].std(axis=0) / reference
        moving.bar(np.arange(3) + 0.16 * (index - 2), mean, 0.15, yerr=deviation, capsize=2)
    moving.set(title="moving base, relative to Euclidean", ylabel="RMS error")
    moving.set_xticks(range(3), ["joint torque", "body force", "body moment"])
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
