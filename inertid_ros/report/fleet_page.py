"""The overview of a fleet as one HTML page that needs no other file and no script."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .templating import rendered

FLEET_PAGE = "fleet.html"
_WIDTH, _HEIGHT, _EDGE = 220.0, 56.0, 5.0  # of a plot, in its own units
_MOST = 100  # rows of a table; the Parquet files hold all


def render_fleet_page(content: Mapping[str, Any]) -> str:
    """HTML of a fleet.

    Parameters
    ----------
    content : mapping
        Content of ``fleet.json``.
    """
    return rendered("fleet.html.j2", fleet=content, most=_MOST, points=estimates_over_time)


def estimates_over_time(series: Mapping[str, Any]) -> dict[str, Any]:
    """Places of the estimates of a series in its plot.

    Returns
    -------
    dict
        ``width``, ``height``; ``estimates``: ``x``, ``y``, and ``low`` and ``high`` of the interval, each of one bag;
        ``changes``: ``x`` of each change point.
    """
    days = [datetime.fromisoformat(date).timestamp() for date in series["dates"]]
    first, last = min(days), max(days)
    low, high = min(series["low"]), max(series["high"])
    across = (_WIDTH - 2 * _EDGE) / ((last - first) or 1.0)
    up = (_HEIGHT - 2 * _EDGE) / ((high - low) or 1.0)

    def x(day: float) -> float:
        return round(_EDGE + (day - first) * across, 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _EDGE - (value - low) * up, 1)

    places = zip(days, series["values"], series["low"], series["high"], strict=True)
    changes = [
        x((datetime.fromisoformat(each["after"]).timestamp() + datetime.fromisoformat(each["before"]).timestamp()) / 2)
        for each in series.get("changes", ())
    ]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "estimates": [{"x": x(a), "y": y(b), "low": y(c), "high": y(d)} for a, b, c, d in places],
        "changes": changes,
    }
