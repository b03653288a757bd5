"""The page of a result: complete without scripts, closed to the network, well-formed, and explained."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from support.paths import ROOT
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.report.curves import Curves, read_curves
from inertid_ros.report.glossary import GLOSSARY
from inertid_ros.report.pages import render_page
from inertid_ros.report.plots.drawing import svg
from inertid_ros.report.report_content import report_content

SECTIONS = (
    "verdict", "errors", "ellipsoids", "links", "predictions", "friction", "coverage", "feasibility", "urdf", "health",
    "provenance", "glossary",
)  # fmt: skip
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Structure(HTMLParser):
    """Elements that are open, identifiers, and what is wrong with either."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.faults, self.references = [], [], [], []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        self.references += [value[1:] for key, value in attributes if key == "href" and value.startswith("#")]
        self.references += named.get("aria-labelledby", "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"{tag} at {self.getpos()}")


@pytest.fixture(scope="module")
def outcome():
    return calibrated_case()[1]


@pytest.fixture(scope="module")
def page(outcome):
    return render_page(report_content(outcome), Curves.of(outcome))


def test_it_is_well_formed(page):
    structure = Structure()
    structure.feed(page)
    assert structure.faults == [] and structure.open == []
    assert len(structure.ids) == len(set(structure.ids)) and set(structure.references) <= set(structure.ids)
    assert [name for name in structure.ids if name in SECTIONS] == list(SECTIONS)


def test_nothing_is_asked_for(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy and "default-src 'none'" in policy[1] and "http" not in policy[1]
    assert not re.search(r"(src|href)=[\"'](?!#)|@import|url\(|fetch\(|XMLHttpRequest", page)
    assert len(page) < 400_000


def test_all_is_there_without_scripts(page, outcome):
    static = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    model, channels = outcome.estimate.model, len(outcome.estimate.equations.channels)
    drawings = 2 + channels + model.joints + len(outcome.health)  # ellipsoids, predictions, friction, spectra
    assert static.count('role="img"') == drawings
    assert "@media (prefers-color-scheme: dark)" in static and "@media print" in static
    for link in outcome.details.feasibility:
        assert static.count(f'<th scope="row">{link.link}</th>') >= 3


def test_every_channel_has_its_errors(page, outcome):
    errors = page[page.index('id="errors"') : page.index('id="ellipsoids"')]
    for word in ("R² calibrated", "sliding", "resting", "noise"):
        assert f'data-label="{word}"' in errors
    assert f"{outcome.validation.calibrated.r_squared[0]:.4f}" in errors
    assert f"{100 * outcome.validation.calibrated.relative_error:.3g} %" in errors


def test_reasons_are_followed_by_what_to_do(outcome):
    report = report_content(replace(outcome, validation=None))
    text = html.unescape(render_page(report))
    assert report["reasons"][0]["remedy"] in text and report["next_action"]["command"] in text
    assert "inertid identify" in report["next_action"]["command"]


def test_reports_of_earlier_versions_are_shown(outcome):
    report = report_content(outcome)
    added = ("next_action", "ellipsoids", "coverage", "feasibility", "correlated_pairs", "urdf_changes", "delay")
    for name in (*added, "health"):
        del report[name]
    for link in report["links"]:
        for name in ("mass_interval", "com_interval", "inertia_interval", "determined"):
            del link[name]
    for section in (report["train"], report["validation"], report["prior"], report["prior"]["validation"]):
        section.pop("r_squared"), section.pop("noise")
    assert all(f'id="{name}"' in render_page(report) for name in SECTIONS)


def test_curves_come_back_from_their_file(outcome, tmp_path):
    curves = Curves.of(outcome)
    (tmp_path / "curves.npz").write_bytes(curves.to_bytes())
    again = read_curves(tmp_path / "curves.npz")
    assert [each.joint for each in again.friction] == [each.joint for each in curves.friction]
    np.testing.assert_allclose(again.predictions[0].measured, curves.predictions[0].measured, rtol=1e-6)
    assert again.spectra[1].cutoff_hz == curves.spectra[1].cutoff_hz
    (tmp_path / "curves.npz").write_bytes(b"cut")
    assert read_curves(tmp_path / "curves.npz") == Curves() == read_curves(tmp_path / "none.npz")


def test_terms_are_those_of_the_glossary():
    known = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert [term for term, _ in GLOSSARY if f"\n| {term} |" not in known] == []


def test_drawings_are_small_and_take_the_colours_of_the_page():
    def draw(figure):
        from matplotlib.lines import Line2D

        figure.add_artist(Line2D([0, 0.5, 1], [0, 1, 0], color="#060606", transform=figure.transFigure))

    drawing = svg(100, 50, "a < b", draw)
    assert drawing.startswith('<svg viewBox="0 0 100 50" font-size="10" role="img" aria-label="a &lt; b">')
    assert "var(--calibrated)" in drawing and ' id="' not in drawing and "<defs" not in drawing
    assert 'd="m 0 50l 50-50 50 50"' in drawing
