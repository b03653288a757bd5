"""Which classical estimator: options, and the combinations that have a name."""

import attrs

from inertid_ros.config.schema.option_fields import option

PARAMETER_SCALINGS = ("metric", "prior", "none")
WEIGHTINGS = ("none", "residual")
RANKS = ("full", "gcv", "held_out", "variance", "auto")
NULL_SPACES = ("prior", "zero")
LOSSES = ("squares", "huber")


@attrs.frozen
class LeastSquaresOptions:
    """Which classical estimator; see :data:`ESTIMATORS` for those with a name.

    Weights of residuals are those of [vanDerGaag2024]_ eqs. 29-32, the scaling by the prior that of its sec. III-C.
    """

    weighting: str = option(
        "residual", "none, or every joint by its residual's standard deviation, iterated", choices=WEIGHTINGS
    )
    scaling: str = option(
        "metric",
        "of parameters: metric (free of units and frames), prior (their values in the prior, and no less than a tenth"
        " of their natural sizes, which are those of the metric) or none",
        choices=PARAMETER_SCALINGS,
    )
    rank: str = option(
        "full",
        "directions fitted: full, gcv (generalised cross-validation), held_out, variance (reduced identification), or"
        " auto (full where all have a small variance, else reduced)",
        choices=RANKS,
    )
    null_space: str = option("prior", "what is not fitted stays at the prior, or at zero", choices=NULL_SPACES)
    loss: str = option("squares", "squares, or huber against gross outliers", choices=LOSSES)
    variance_limit: float = option(
        0.01, "largest variance of a direction that rank variance fits; the prior's is of the order of 0.1",
        minimum=1e-12, maximum=1e12,
    )
    cross_validation_sets: int = option(
        5, "that a single recording is split into, for rank held_out", minimum=2, maximum=100
    )
    independent: bool = option(
        False, "take all samples as independent, as published tables do, however correlated their residuals"
    )

    @property
    def name(self) -> str:
        """Of the method, for reports."""
        for name, known in ESTIMATORS.items():
            if self == known:
                return name
        return f"least squares: {self.loss}, {self.weighting} weights, {self.scaling} scaling, {self.rank} rank"


ESTIMATORS = {
    "ols": LeastSquaresOptions(weighting="none"),
    "wls": LeastSquaresOptions(),
    "truncated": LeastSquaresOptions(rank="gcv"),
    "reduced": LeastSquaresOptions(rank="variance"),
    "auto": LeastSquaresOptions(rank="auto"),
    "huber": LeastSquaresOptions(loss="huber"),
    # [vanDerGaag2024]_ sec. III: weighted rows, columns or both; rank by held-out data, the rest at the prior.
    "wls_r": LeastSquaresOptions(scaling="none", rank="held_out"),
    "wls_c": LeastSquaresOptions(weighting="none", scaling="prior", rank="held_out"),
    "wls_rc": LeastSquaresOptions(scaling="prior", rank="held_out"),
}
