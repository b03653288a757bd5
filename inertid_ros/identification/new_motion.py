"""Whether what was held out is a new motion to the fit, and what the fit says of it where it is not."""

from collections.abc import Sequence

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.screening.repeated_motion import RepeatedMotion, repeated_motion
from inertid_ros.identification.assessment.error_checks import check_errors
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.torque_scale import bodies_as_given
from inertid_ros.identification.assessment.validation import compared, torque_errors
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.prior.constraints import Constraints

from .held_out_blocks import refitted


@one_thread()
def check_new_motion(
    estimate: Estimate,
    recordings: Sequence[Samples],
    held_out: Sequence[Samples],
    options: IdentifyOptions,
    constraints: Constraints,
) -> tuple[Finding, ...]:
    """Findings on held-out recordings that repeat the motion of some that were fitted.

    Such a recording still says something of generalisation where others of another motion were fitted beside: a fit to
    those alone, which has not seen the motion, must predict it.

    Parameters
    ----------
    recordings : sequence of Samples
        Those that were fitted, with the delay of effort removed.
    held_out : sequence of Samples
        With the delay of effort removed.
    """
    findings = []
    for samples in held_out:
        repeated = repeated_motion(samples, recordings)
        if repeated.new:
            continue
        others = [each for index, each in enumerate(recordings) if index not in repeated.by]
        error = _error_of_fit_to(others, estimate, samples, options, constraints) if others else None
        findings.append(_finding(samples, repeated, [recordings[index].name for index in repeated.by], error))
    return tuple(findings)


def _error_of_fit_to(
    others: Sequence[Samples],
    estimate: Estimate,
    samples: Samples,
    options: IdentifyOptions,
    constraints: Constraints,
) -> float | None:
    """Relative torque error on some samples of a fit to other recordings alone; None where it does not pass."""
    equations = estimate.equations
    parameters = refitted(estimate, others, compress(equations, others), options, constraints)
    errors = [torque_errors(equations, each, [samples]) for each in (parameters, estimate.prior)]
    typical = bodies_as_given(estimate.layout, estimate.prior, parameters)
    passed = not any(
        finding.severity >= Severity.CARE
        for finding in check_errors(compared(equations, typical, [samples], (errors[0], errors[1])))
    )
    return errors[0].relative_error if passed else None


def _finding(samples: Samples, repeated: RepeatedMotion, by: Sequence[str], error: float | None) -> Finding:
    names = " and ".join(by)
    evidence = (
        f"{100 * repeated.share:.0f} % of the motion is that of {names}, which was fitted; after a shift they are"
        f" {100 * repeated.difference:.2g} % apart"
    )
    if error is not None:
        evidence += f", and a fit without {names} predicts it with a torque error of {100 * error:.2f} %"
    severity = Severity.CARE if error is None else Severity.NOTICE
    return Finding("held_out_not_new", severity, evidence, remedy_for("held_out_not_new"), (), samples.name)
