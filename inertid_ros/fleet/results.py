"""Results of a fleet as tables in Parquet files (columns: ``docs/fleet.md``), as ``fleet.json``, and as a page."""

import io
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.core.outputs import write_file
from inertid_ros.fleet.catalogue import optional
from inertid_ros.fleet.model_distribution import benjamini_hochberg
from inertid_ros.fleet.run import BagOutcome, FleetOutcome, ModelPopulation, used_bags
from inertid_ros.report.pages import rendered
from inertid_ros.report.report_content import plain, records

TABLES = ("robots", "models", "drift", "bags")
DRIFT_LEVEL = 0.05  # expected share of false results among the significant trends and change points
_DAY_S = 86400.0
_OUTLYING = ("parameter", "change", "deviation", "p_value")
_TREND = ("level", "trend", "trend_low", "trend_high", "p_value")

Rows = list[dict[str, Any]]
FLEET_FORMAT = 1  # version of fleet.json
FLEET_PAGE = "fleet.html"
_PLOT_WIDTH, _PLOT_HEIGHT, _PLOT_MARGIN = 220.0, 56.0, 5.0
_MAX_ROWS = 100  # rows of a table on the page; the Parquet files hold all rows


def fleet_tables(outcome: FleetOutcome) -> dict[str, Rows]:
    """Return the rows of the tables ``robots``, ``models``, ``drift`` and ``bags``."""
    return {"robots": list(_robot_rows(outcome)),
        "models": [row for population in outcome.models.values() for row in _model_rows(population)],
        "drift": _drift_rows(outcome), "bags": [_bag_row(bag) for bag in outcome.bags]}


def write_tables(tables: Mapping[str, Rows], directory: Path) -> None:
    """Write or replace the file ``<name>.parquet`` of each table; raise FleetError without PyArrow, or OutputError."""
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    for name, rows in tables.items():
        buffer = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(rows), buffer)
        write_file(directory / f"{name}.parquet", buffer.getvalue(), force=True)


def _date(day: float) -> datetime:
    return datetime.fromtimestamp(day * _DAY_S, timezone.utc)


def _robot_rows(outcome: FleetOutcome) -> Iterator[dict[str, Any]]:
    """A row for each robot and parameter."""
    used = used_bags(outcome.bags)
    for serial, estimate in outcome.estimates.items():
        population = outcome.models[outcome.catalogue.robots[serial].model]
        outlier = population.outliers.get(serial)
        change = (outlier.parameter, outlier.size, outlier.deviation, outlier.p_value) if outlier else ("", *[None] * 3)
        of_robot = {"serial": serial, "model": population.model, "verdict": estimate["verdict"],
            "bags": len(used[serial]), "first": used[serial][0].bag.date, "last": used[serial][-1].bag.date,
            "prior": "URDF" if population.distribution is None or outlier else "model", "outlying": outlier is not None,
            **{f"outlying_{key}": value for key, value in zip(_OUTLYING, change, strict=True)}}
        for row in estimate["rows"]:
            yield {**of_robot, **row}


def _model_rows(population: ModelPopulation) -> Rows:
    """One row for each base parameter of a model with a distribution."""
    distribution = population.distribution
    if distribution is None:
        return []
    covariance = distribution.covariance
    columns = {"parameter": distribution.names, "mean": distribution.mean,
        "mean_deviation": distribution.mean_deviation, "between_deviation": np.sqrt(np.diagonal(covariance)),
        "within_deviation": distribution.within_deviation, "between_covariance": covariance}
    of_model = {"model": population.model, "robots": distribution.population.count,
        "outlying": len(population.outliers)}
    return [{**of_model, **row} for row in plain(records(columns))]


def _drift_rows(outcome: FleetOutcome) -> Rows:
    """One row for each robot and parameter over time; significance is tested over the whole fleet."""
    rows: Rows = []
    for serial, result in sorted(outcome.robots.items()):
        for series in result.summary["drift"]:
            dates = {key: [_date(day) for day in series[key]] for key in ("days", "change_after", "change_before")}
            row = {"serial": serial, "model": outcome.catalogue.robots[serial].model, **series, **dates}
            row |= {"dates": row.pop("days"), "drifting": False, "changed": False}
            rows.append(row)
    tested = [row for row in rows if row["p_value"] is not None]
    p_values = [min(row["change_p_value"], default=1.0) for row in tested]
    drifting = benjamini_hochberg(np.array([row["p_value"] for row in tested]), DRIFT_LEVEL)
    changed = benjamini_hochberg(np.array(p_values), DRIFT_LEVEL)
    for row, trend, step in zip(tested, drifting.tolist(), changed.tolist(), strict=True):
        row |= {"drifting": trend, "changed": step}
    return rows


def _bag_row(outcome: BagOutcome) -> dict[str, Any]:
    bag, summary = outcome.bag, outcome.summary
    return {"serial": bag.serial, "bag": bag.url, "date": bag.date, "payload": bag.payload, "used": outcome.used,
        "verdict": summary.get("verdict", ""), "message": outcome.message, "computed": outcome.computed,
        "key": outcome.key, **{key: summary.get(key) for key in ("duration_s", "samples", "bytes")},
        "seconds": summary.get("seconds_total"), "seconds_processor": summary.get("seconds_processor")}


def fleet_content(outcome: FleetOutcome, tables: Mapping[str, Rows], dashboard: str = "") -> dict[str, Any]:
    """Return the content of ``fleet.json``; ``dashboard`` is the address of Dask's dashboard, or empty."""
    robots = list({row["serial"]: row for row in tables["robots"]}.values())  # one row per robot
    return {"format": FLEET_FORMAT, "robots": len(outcome.catalogue.robots), "robots_estimated": len(outcome.estimates),
        "bags": len(outcome.bags), "bags_used": sum(bag.used for bag in outcome.bags),
        "bags_computed": outcome.computed_bags, "dashboard": dashboard, "seconds": dict(outcome.seconds),
        "models": [_model_content(outcome, name, tables) for name in outcome.models],
        "outlying": [_outlier_content(row) for row in robots if row["outlying"]],
        "drifting": [_series_content(row, *_TREND) for row in tables["drift"] if row["drifting"]],
        "changed": [_changes_content(row) for row in tables["drift"] if row["changed"]],
        "verdicts": {row["serial"]: row["verdict"] for row in robots},
        "problems": [str(problem) for problem in outcome.problems]}


def _model_content(outcome: FleetOutcome, name: str, tables: Mapping[str, Rows]) -> dict[str, Any]:
    rows = [row for row in tables["models"] if row["model"] == name]
    keys = ("parameter", "mean", "mean_deviation", "between_deviation", "within_deviation")
    return {"name": name, "robots": len(outcome.models[name].serials),
        "parameters": [{key: row[key] for key in keys} for row in rows]}


def _outlier_content(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"serial": row["serial"], "model": row["model"], **{key: row[f"outlying_{key}"] for key in _OUTLYING}}


def _series_content(row: Mapping[str, Any], *further: str) -> dict[str, Any]:
    keys = ("serial", "parameter", "values", "low", "high")
    return {key: row[key] for key in (*keys, *further)} | {"dates": [date.isoformat() for date in row["dates"]]}


def _changes_content(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("change_after", "change_before", "change", "change_low", "change_high")
    columns = zip(*(row[name] for name in names), strict=True)
    changes = [{"after": after.isoformat(), "before": before.isoformat(), "change": size, "low": low, "high": high}
        for after, before, size, low, high in columns]
    return _series_content(row) | {"changes": changes}


def render_fleet_page(content: Mapping[str, Any]) -> str:
    """Render the content of ``fleet.json`` as an HTML page without scripts or other files."""
    return rendered("fleet.html.j2", fleet=content, most=_MAX_ROWS, points=estimates_over_time)


def estimates_over_time(series: Mapping[str, Any]) -> dict[str, Any]:
    """Return plot coordinates of a series: per bag ``x``, ``y``, ``low``, ``high``; ``x`` of each change point."""
    days = [datetime.fromisoformat(date).timestamp() for date in series["dates"]]
    first, last = min(days), max(days)
    low, high = min(series["low"]), max(series["high"])
    across = (_PLOT_WIDTH - 2 * _PLOT_MARGIN) / ((last - first) or 1.0)
    up = (_PLOT_HEIGHT - 2 * _PLOT_MARGIN) / ((high - low) or 1.0)

    def x(day: float) -> float:
        return round(_PLOT_MARGIN + (day - first) * across, 1)

    def y(value: float) -> float:
        return round(_PLOT_HEIGHT - _PLOT_MARGIN - (value - low) * up, 1)

    places = zip(days, series["values"], series["low"], series["high"], strict=True)
    steps = [[datetime.fromisoformat(change[key]).timestamp() for key in ("after", "before")]
             for change in series.get("changes", ())]  # fmt: skip
    return {"width": _PLOT_WIDTH, "height": _PLOT_HEIGHT,
        "estimates": [{"x": x(a), "y": y(b), "low": y(c), "high": y(d)} for a, b, c, d in places],
        "changes": [x((after + before) / 2) for after, before in steps]}
