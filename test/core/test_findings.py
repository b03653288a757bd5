import pytest

from inertid_ros.core.findings import CAUSES, Finding, Severity


def test_a_finding_reads_as_one_line_with_evidence_cause_and_remedy() -> None:
    finding = Finding(
        "effort_sign", Severity.REFUSE, "effort of elbow is -0.98 times what gravity asks for",
        "set robot.effort_scale: {elbow: -1}", ("elbow",), "run1.npz",
    )  # fmt: skip
    assert str(finding) == (
        "run1.npz: effort of elbow is -0.98 times what gravity asks for (the effort has the opposite sign);"
        " set robot.effort_scale: {elbow: -1}"
    )


def test_a_cause_has_to_be_listed() -> None:
    with pytest.raises(ValueError, match="unknown cause 'weather'"):
        Finding("weather", Severity.NOTICE, "it rains", "wait")


def test_causes_are_clauses_without_punctuation_at_the_end() -> None:
    assert all(text[-1].isalpha() and text[0].islower() for text in (cause.meaning for cause in CAUSES.values()))
