"""Three studies on the leg: nested constraints, regularizers at equal residual, and regularizers on a moving base."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from studies.leg_fits import CONSTRAINTS, ConstrainedFits, RegularizedFits
from studies.leg_twin import COULOMB, VISCOUS, FloatingLeg, Motion, gallop, leg_swing, true_bodies
from support.robots.cheetah_leg import leg_model

from inertid_ros.core.arrays import Array
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.model import RobotModel

NOISE = 1.0  # N m, per torque sample
PRIOR_SPREAD = 0.3  # standard deviation of the geodesic distance of a body to its prior
GAMMA = NOISE**2 / PRIOR_SPREAD**2  # weight of the entropic regularizer; all regularizers get its residual
SECONDS = 10.0  # motion to fit, and equally long motion to test
EXACTNESS = 0.005  # N m, RMS residual of the fits without noise

_TORQUE_FORCE_MOMENT = slice(6, 9), slice(0, 3), slice(3, 6)
Curves = dict[tuple[str, int], list[float]]  # (name, samples) to one error per repeat


def dense_regressor(model: RobotModel, motion: Motion) -> Array:
    """Regressor of all parameters ``(N, 3, p)``."""
    samples = motion.samples()
    out, start = np.zeros((len(samples), model.joints, model.layout.size)), 0
    columns = ForceEquations(model).columns
    for chunk in dense_equations(ForceEquations(model), samples):
        count = len(chunk[0][1])
        for joint, (A, _) in enumerate(chunk):
            out[start : start + count, joint, columns[joint]] = A
        start += count
    return out


class Study:
    """The leg, its motions and their regressors; each repeat draws new true bodies, samples and noise."""

    def __init__(self, leg: dict[str, Any]) -> None:
        self.leg, self.model, self.bodies_only = leg, leg_model(leg), leg_model(leg, ())
        motion = leg_swing(self.model, 2 * SECONDS)
        half = len(motion.q) // 2
        self.train = dense_regressor(self.model, motion[:half])
        self.test = dense_regressor(self.model, motion[np.arange(half, len(motion.q), 10)])
        self.friction = np.array(VISCOUS + COULOMB)

    def repeats(self, count: int) -> Iterator[tuple[np.random.Generator, Array]]:
        """Generator and true parameters ``(66,)`` of each repeat."""
        for seed in range(count):
            rng = np.random.default_rng(seed)
            yield rng, np.concatenate([true_bodies(self.leg, rng).ravel(), self.friction])

    def draw(self, rng: np.random.Generator, truth: Array, samples: int) -> tuple[Array, Array]:
        """Equations ``A x = b`` of samples at random times, with noise."""
        rows = rng.choice(len(self.train), samples, replace=False)
        A = self.train[rows].reshape(-1, len(truth))
        return A, A @ truth + NOISE * rng.normal(size=len(A))

    def error(self, difference: Array) -> float:
        """RMS torque [N m] over test motion and joints caused by a difference of parameters."""
        return float(np.sqrt(np.mean((self.test[..., : len(difference)] @ difference) ** 2)))

    def constraints(self, sizes: tuple[int, ...], repeats: int) -> Curves:
        """Fit bodies and friction under nested constraints ([Wensing2018]_ sec. VI, fig. 6)."""
        fits, curves = ConstrainedFits(self.model, self.leg), defaultdict(list)
        for rng, truth in self.repeats(repeats):
            for size in sizes:
                A, b = self.draw(rng, truth, size)
                for name in CONSTRAINTS:
                    curves[name, size].append(self.error(fits.fit(A, b, name) - truth))
        return dict(curves)

    def regularizers(
        self, sizes: tuple[int, ...], repeats: int, gamma: float = GAMMA, names: tuple[str, ...] = ()
    ) -> tuple[Curves, dict[int, float]]:
        """Fit bodies by several distances at equal residual, friction known ([Lee2019]_ sec. 3.6.2.1, fig. 3.10).

        Returns
        -------
        Errors, ``prior`` among them, and the RMS residual on the samples fitted [N m] for each number of samples.
        """
        fits = RegularizedFits(self.bodies_only, self.leg, names)
        curves, residuals = defaultdict(list), defaultdict(list)
        for rng, truth in self.repeats(repeats):
            bodies = truth[:60]
            for size in sizes:
                A, b = self.draw(rng, truth, size)
                A, b = A[:, :60], b - A[:, 60:] @ self.friction
                _, bound = fits.entropic(A, b, gamma)
                residuals[size].append(np.sqrt(bound / len(b)))
                for name, parameters in fits.at_residual(A, b, bound).items():
                    curves[name, size].append(self.error(parameters - bodies))
                curves["prior", size].append(self.error(self.bodies_only.prior - bodies))
        return dict(curves), {size: float(np.mean(values)) for size, values in residuals.items()}

    def floating(self, repeats: int) -> dict[str, Array]:
        """Fit a leg held by its base without noise, and test in a gallop ([Lee2019]_ sec. 3.6.2.2, fig. 3.12).

        Returns
        -------
        RMS errors ``(repeats, 3)`` of joint torque, force and moment on the body [N m, N, N m], by regularizer.
        """
        motion, *base = gallop(1.2)
        every = slice(None, None, 4)
        moving = FloatingLeg(self.bodies_only, self.bodies_only.urdf)
        whole = moving.regressor(motion[every], *(channel[every] for channel in base))
        A = dense_regressor(self.bodies_only, motion[every]).reshape(-1, 60)
        fits, errors = RegularizedFits(self.bodies_only, self.leg), defaultdict(list)
        for _, truth in self.repeats(repeats):
            b = A @ truth[:60]
            found = fits.at_residual(A, b, len(b) * EXACTNESS**2)
            for name, parameters in {**found, "prior": self.bodies_only.prior}.items():
                wrong = whole @ (parameters - truth[:60])
                errors[name].append([np.sqrt(np.mean(wrong[:, rows] ** 2)) for rows in _TORQUE_FORCE_MOMENT])
        return {name: np.array(values) for name, values in errors.items()}
