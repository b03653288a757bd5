"""Results of a fleet in short, as plain data: what ``--json`` prints and the page shows."""

from collections.abc import Mapping
from typing import Any

from .result_tables import Rows
from .run import FleetOutcome

FORMAT = 1  # of fleet.json


def fleet_content(outcome: FleetOutcome, tables: Mapping[str, Rows], dashboard: str = "") -> dict[str, Any]:
    """Content of ``fleet.json``.

    Parameters
    ----------
    tables : mapping of str to rows
        Of :func:`.result_tables.fleet_tables`.
    dashboard : str
        Address at which Dask showed the run; empty where there was none.
    """
    used = [bag for bag in outcome.bags if bag.used]
    return {
        "format": FORMAT,
        "robots": len(outcome.catalogue.robots),
        "robots_estimated": len(outcome.estimates),
        "bags": len(outcome.bags),
        "bags_used": len(used),
        "bags_computed": outcome.computed_bags,
        "dashboard": dashboard,
        "seconds": dict(outcome.seconds),
        "models": [_model(outcome, name, tables) for name in outcome.models],
        "outlying": [_outlier(row) for row in _of_robots(tables) if row["outlying"]],
        "drifting": [_drift(row) for row in tables["drift"] if row["drifting"]],
        "changed": [_changes(row) for row in tables["drift"] if row["changed"]],
        "verdicts": {row["serial"]: row["verdict"] for row in _of_robots(tables)},
        "problems": [str(problem) for problem in outcome.problems],
    }


def _of_robots(tables: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """One row of every robot."""
    return list({row["serial"]: row for row in tables["robots"]}.values())


def _model(outcome: FleetOutcome, name: str, tables: Mapping[str, Rows]) -> dict[str, Any]:
    rows = [row for row in tables["models"] if row["model"] == name]
    keys = ("parameter", "mean", "mean_deviation", "between_deviation", "within_deviation")
    return {
        "name": name,
        "robots": len(outcome.models[name].serials),
        "parameters": [{key: row[key] for key in keys} for row in rows],
    }


def _outlier(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "serial": row["serial"],
        "model": row["model"],
        "parameter": row["outlying_parameter"],
        "change": row["outlying_change"],
        "deviation": row["outlying_deviation"],
        "p_value": row["outlying_p_value"],
    }


def _drift(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("serial", "parameter", "level", "trend", "trend_low", "trend_high", "p_value", "values", "low", "high")
    return {**{key: row[key] for key in keys}, "dates": [date.isoformat() for date in row["dates"]]}


def _changes(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("change", "change_low", "change_high", "change_p_value")
    columns = zip(row["change_after"], row["change_before"], *(row[name] for name in names), strict=True)
    return {
        **{key: row[key] for key in ("serial", "parameter", "values", "low", "high")},
        "dates": [date.isoformat() for date in row["dates"]],
        "changes": [
            {"after": after.isoformat(), "before": before.isoformat(), "change": size, "low": low, "high": high}
            for after, before, size, low, high, _ in columns
        ],
    }
