"""All details of one result."""

from collections.abc import Sequence
from dataclasses import dataclass

from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence

from .body_intervals import BodyIntervals, body_intervals
from .correlated_parameters import CorrelatedPair, correlated_pairs
from .feasibility import FeasibilityMargin, feasibility_margins
from .friction_curves import FrictionCurve, friction_curves
from .inertia_ellipsoids import InertiaEllipsoids, inertia_ellipsoids
from .motion_coverage import JointCoverage, motion_coverage
from .prediction_curves import PredictionCurves, prediction_curves


@dataclass(frozen=True)
class ResultDetails:
    """Details of an estimate; every attribute is described in the module that makes it.

    Attributes
    ----------
    predictions : tuple of PredictionCurves
        Of every held-out recording, or of those fitted where nothing was held out.
    friction : tuple of FrictionCurve
        With the data that were fitted.
    """

    bodies: tuple[BodyIntervals, ...]
    ellipsoids: tuple[InertiaEllipsoids, ...]
    predictions: tuple[PredictionCurves, ...]
    friction: tuple[FrictionCurve, ...]
    coverage: tuple[JointCoverage, ...]
    feasibility: tuple[FeasibilityMargin, ...]
    correlated: tuple[CorrelatedPair, ...]

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        train: Sequence[Samples],
        held_out: Sequence[Samples],
        confidence: TorqueConfidence | None,
    ) -> "ResultDetails":
        """Details of an estimate by the samples that it was fitted to and validated on, their delay removed."""
        return cls(
            body_intervals(estimate),
            inertia_ellipsoids(estimate),
            prediction_curves(estimate, held_out or train),
            friction_curves(estimate, train),
            motion_coverage(estimate.model, train, confidence),
            feasibility_margins(estimate),
            correlated_pairs(estimate),
        )
