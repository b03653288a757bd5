"""Results as notebooks show them."""

from inertid_ros.identification.outcome import IdentificationOutcome

from .pages import render_summary
from .report_content import report_content


class CalibrationOutcome(IdentificationOutcome):
    """An identification outcome that notebooks show as verdict, errors and links."""

    def _repr_html_(self) -> str:
        return render_summary(report_content(self))
