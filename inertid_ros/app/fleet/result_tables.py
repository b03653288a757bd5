"""Results of a fleet as tables, in Parquet files; ``docs/fleet.md`` describes the columns."""

import io
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.core.outputs import write_file
from inertid_ros.identification.population.model_distribution import ModelDistribution
from inertid_ros.identification.population.multiple_tests import benjamini_hochberg

from .catalogue_reading import serials_of
from .jobs.errors import optional
from .model_populations import ModelPopulation
from .run import BagOutcome, FleetOutcome

TABLES = ("robots", "models", "drift", "bags")
DRIFT_LEVEL = 0.05  # share of false ones among the trends and change points that are called significant
_DAY_S = 86400.0
_TREND = ("trend", "trend_low", "trend_high", "p_value", "level", "scatter")

Rows = list[dict[str, Any]]


def fleet_tables(outcome: FleetOutcome) -> dict[str, Rows]:
    """Rows of the tables ``robots``, ``models``, ``drift`` and ``bags``."""
    return {
        "robots": list(_robots(outcome)),
        "models": [row for population in outcome.models.values() for row in _model(population)],
        "drift": _drift(outcome),
        "bags": [_bag(each) for each in outcome.bags],
    }


def write_tables(tables: Mapping[str, Rows], directory: Path) -> list[Path]:
    """Write each table as ``<name>.parquet``, one that is there is replaced.

    Raises
    ------
    FleetError
        PyArrow is not installed.
    OutputError
        A file cannot be written.
    """
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    written = []
    for name, rows in tables.items():
        buffer, target = io.BytesIO(), directory / f"{name}.parquet"
        parquet.write_table(arrow.Table.from_pylist(rows), buffer)
        write_file(target, buffer.getvalue(), force=True)
        written.append(target)
    return written


def date_of(day: float) -> datetime:
    """Date of days since 1970, UTC."""
    return datetime.fromtimestamp(day * _DAY_S, timezone.utc)


def _robots(outcome: FleetOutcome) -> Iterator[dict[str, Any]]:
    """One row for each robot and parameter."""
    used = serials_of(bag.bag for bag in outcome.bags if bag.used)
    for serial, estimate in outcome.estimates.items():
        population = outcome.models[outcome.catalogue.robots[serial].model]
        outlier = population.outliers.get(serial)
        of_robot = {
            "serial": serial,
            "model": population.model,
            "verdict": estimate.decision["verdict"],
            "bags": len(used[serial]),
            "first": used[serial][0].date,
            "last": used[serial][-1].date,
            "prior": "URDF" if population.distribution is None or outlier else "model",
            "outlying": outlier is not None,
            "outlying_parameter": outlier.change.name if outlier else "",
            "outlying_change": outlier.size if outlier else None,
            "outlying_deviation": outlier.deviation if outlier else None,
            "outlying_p_value": outlier.p_value if outlier else None,
        }
        for name, value, deviation, urdf, (low, high) in zip(
            estimate.names,
            estimate.values.tolist(),
            estimate.deviations.tolist(),
            estimate.urdf.tolist(),
            estimate.intervals.tolist(),
            strict=True,
        ):
            numbers = {"value": value, "deviation": deviation, "low": low, "high": high, "urdf": urdf}
            yield {**of_robot, "parameter": name, **numbers}


def _model(population: ModelPopulation) -> Iterator[dict[str, Any]]:
    """One row for each base parameter of a model that has a distribution."""
    known = population.distribution
    if known is None or population.within is None:
        return
    for index, name in enumerate(known.names):
        yield {
            "model": population.model,
            "robots": known.population.count,
            "outlying": len(population.outliers),
            "parameter": name,
            "mean": float(known.mean[index]),
            "mean_deviation": float(known.mean_deviation[index]),
            "between_deviation": float(np.sqrt(known.covariance[index, index])),
            "within_deviation": float(population.within[index]),
            "between_covariance": _row(known, index),
        }


def _row(known: ModelDistribution, index: int) -> list[float]:
    row: list[float] = known.covariance[index].tolist()
    return row


def _drift(outcome: FleetOutcome) -> Rows:
    """One row for each robot and parameter that is followed over time; significance is that of the whole fleet."""
    rows = []
    for serial, result in sorted(outcome.robots.items()):
        for found in result.summary["drift"]:
            changes = found["changes"]
            rows.append(
                {
                    "serial": serial,
                    "model": outcome.catalogue.robots[serial].model,
                    "parameter": found["parameter"],
                    "dates": [date_of(day) for day in found["days"]],
                    "values": found["values"],
                    "low": found["low"],
                    "high": found["high"],
                    **{key: found.get(key) for key in _TREND},
                    "drifting": False,
                    "change_after": [date_of(change["first_day"]) for change in changes],
                    "change_before": [date_of(change["last_day"]) for change in changes],
                    "change": [change["step"] for change in changes],
                    "change_low": [change["step_low"] for change in changes],
                    "change_high": [change["step_high"] for change in changes],
                    "change_p_value": [change["p_value"] for change in changes],
                    "changed": False,
                }
            )
    tried = [row for row in rows if row["p_value"] is not None]
    steps = [min(row["change_p_value"], default=1.0) for row in tried]
    drifting = benjamini_hochberg(np.array([row["p_value"] for row in tried]), DRIFT_LEVEL)
    changed = benjamini_hochberg(np.array(steps), DRIFT_LEVEL)
    for row, trend, step in zip(tried, drifting.tolist(), changed.tolist(), strict=True):
        row |= {"drifting": trend, "changed": step}
    return rows


def _bag(outcome: BagOutcome) -> dict[str, Any]:
    bag, summary = outcome.bag, outcome.summary
    return {
        "serial": bag.serial,
        "bag": bag.url,
        "date": bag.date,
        "payload": bag.payload,
        "used": outcome.used,
        "verdict": summary.get("verdict", ""),
        "message": outcome.message,
        "computed": outcome.computed,
        "key": outcome.key,
        "duration_s": summary.get("duration_s"),
        "samples": summary.get("samples"),
        "bytes": summary.get("bytes"),
        "seconds": summary.get("seconds_total"),
        "seconds_processor": summary.get("seconds_processor"),
    }
