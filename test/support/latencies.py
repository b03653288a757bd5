"""Latencies that real-time tests measure: collected by name, printed at the end of the run."""

from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

_PROPERTY = "latency"


class Latencies:
    """Of one module or test; they travel with the test's report, so that workers of pytest-xdist can send them."""

    def __init__(self) -> None:
        self.samples: list[tuple[str, float]] = []

    def add(self, name: str, *seconds: float) -> None:
        """Samples of what the name says [s]."""
        self.samples += [(name, float(value)) for value in seconds]

    def move_to(self, record: Callable[[str, object], None]) -> None:
        """Hand them to ``record_property`` of the test that measured them."""
        record(_PROPERTY, self.samples)
        self.samples = []


def print_latencies(reporter: Any) -> None:
    """A table of all samples of the run, where there are any."""
    table: dict[str, list[float]] = defaultdict(list)
    for report in (report for reports in reporter.stats.values() for report in reports):
        for name, samples in getattr(report, "user_properties", []):
            if name == _PROPERTY and report.when == "teardown":
                for what, seconds in samples:
                    table[what].append(1e3 * seconds)
    if table:
        reporter.section("latencies [ms]")
        reporter.write_line(f"{'':42}{'count':>7}{'median':>9}{'largest':>9}")
        for what in sorted(table):
            values = table[what]
            reporter.write_line(f"{what:42}{len(values):>7}{median(values):>9.1f}{max(values):>9.1f}")


@pytest.fixture(scope="session")
def all_latencies() -> Latencies:
    """For fixtures that several tests share."""
    return Latencies()


@pytest.fixture
def latencies(all_latencies: Latencies, record_property: Callable[[str, object], None]) -> Any:
    """Where a test puts what it measures."""
    yield all_latencies
    all_latencies.move_to(record_property)
