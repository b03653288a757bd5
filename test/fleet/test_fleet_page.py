"""The overview of a fleet: one page, without scripts and other files, for light, dark and narrow screens."""

import re

from inertid_ros.fleet.results import estimates_over_time, render_fleet_page

SERIES = {
    "serial": "R1",
    "parameter": "joint1.coulomb",
    "dates": ["2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"],
    "values": [1.0, 1.1, 1.4],
    "low": [0.9, 1.0, 1.3],
    "high": [1.1, 1.2, 1.5],
}
CHANGE = {"after": SERIES["dates"][1], "before": SERIES["dates"][2], "change": 0.3, "low": 0.2, "high": 0.4}
CONTENT = {
    "robots": 3, "robots_estimated": 2, "bags": 6, "bags_used": 5, "bags_computed": 1, "dashboard": "",
    "seconds": {"bags": 3.0},
    "models": [
        {
            "name": "arm",
            "robots": 2,
            "parameters": [
                {"parameter": "hand.m", "mean": 1.0, "mean_deviation": 0.1, "between_deviation": 0.2,
                 "within_deviation": 0.05}
            ],
        },
        {"name": "leg", "robots": 1, "parameters": []},
    ],
    "outlying": [
        {"serial": "R<1>", "model": "arm", "parameter": "hand.m", "change": 0.4, "deviation": 0.02, "p_value": 1e-9}
    ],
    "drifting": [{**SERIES, "level": 1.2, "trend": 2.0, "trend_low": 1.5, "trend_high": 2.5, "p_value": 1e-4}],
    "changed": [{**SERIES, "changes": [CHANGE]}],
    "verdicts": {"R1": "use"},
    "problems": ["R3: bag: no such file; check the catalogue"],
}  # fmt: skip


def test_the_page_needs_no_script_and_no_other_file():
    page = render_fleet_page(CONTENT)
    assert "<script" not in page
    assert not re.search(r"""(src|href)=|@import|url\(""", page)
    assert 'content="width=device-width' in page
    assert "prefers-color-scheme: dark" in page
    assert "R&lt;1&gt;" in page and "R<1>" not in page
    for words in ("joint1.coulomb", "no such file", "Too few robots", "2 of 3", "5 of 6"):
        assert words in page
    assert page.count('<table class="rows">') == 4  # on narrow screens, each row is a block


def test_nothing_found_is_said():
    empty = {**CONTENT, "outlying": [], "drifting": [], "changed": [], "problems": []}
    assert render_fleet_page(empty).count("<p>None.</p>") == 4


def test_long_tables_end_and_say_so():
    page = render_fleet_page({**CONTENT, "problems": [f"line {index}" for index in range(500)]})
    assert "The first 100 of 500" in page
    assert "line 99<" in page and "line 100<" not in page


def test_estimates_are_within_their_plot():
    drawn = estimates_over_time({**SERIES, "changes": [CHANGE]})
    for each in drawn["estimates"]:
        assert 0 <= each["x"] <= drawn["width"]
        assert 0 <= each["high"] < each["y"] < each["low"] <= drawn["height"]
    assert drawn["estimates"][1]["x"] < drawn["changes"][0] < drawn["estimates"][2]["x"]


def test_one_estimate_is_a_plot_too():
    one = {key: value[:1] if isinstance(value, list) else value for key, value in SERIES.items()}
    assert len(estimates_over_time(one)["estimates"]) == 1
