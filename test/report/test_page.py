"""The page of a result: complete without scripts, closed to the network, well-formed, and explained."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from support.paths import ROOT
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.cli.printing import print_report
from inertid_ros.identification.assess import NOT_VALIDATED
from inertid_ros.identification.assessment.gate import GateDecision
from inertid_ros.report.drawing import svg
from inertid_ros.report.pages import _interval, prediction_plots, render_page
from inertid_ros.report.report_content import Curves, report_content

SECTIONS = ("verdict", "errors", "ellipsoids", "links", "predictions", "friction", "coverage", "feasibility", "urdf",
    "health", "provenance", "glossary")
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
    return render_page(report_content(outcome), Curves.from_outcome(outcome))


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
    drawings = 3 + channels + model.joints + len(outcome.health)  # first screen, ellipsoids, joints, spectra
    assert static.count('role="img"') == drawings
    assert "@media (prefers-color-scheme: dark)" in static and "@media print" in static
    for link in outcome.assessment.feasibility:
        assert static.count(f'<th scope="row">{link.link}</th>') >= 3


def test_every_channel_has_its_errors(page, outcome):
    errors = page[page.index('id="errors"') : page.index('id="ellipsoids"')]
    for word in ("R² calibrated", "sliding", "resting", "noise"):
        assert f'data-label="{word}"' in errors
    assert f"{outcome.validation.calibrated.r_squared[0]:.4f}" in errors
    assert f"{100 * outcome.validation.calibrated.relative_error:.3g} %" in errors


def section(page, name):
    """Text of a section of a page."""
    return html.unescape(page[page.index(f'<section id="{name}"') :].partition("</section>")[0])


def test_links_have_inertia_with_interval_and_origin(page, outcome):
    text = section(page, "links").replace("\n", "")
    link = report_content(outcome)["links"][0]
    values = (link["inertia"][0][0], *link["inertia_interval"][0], link["prior"]["inertia"][0][0])
    value, low, high, given = (f"{each:.3g}".replace("-", "−") for each in values)
    assert f'data-label="xx">{value}<small>{low} to {high}</small><small>given {given}</small>' in text
    origins = re.findall(r'<span class="tag[^>]*>([^<]*)</span>', text)
    assert len(origins) == 10 * outcome.estimate.model.joints  # mass, centre of mass and inertia of every link
    assert {"in combination", "from prior"} <= set(origins) <= {"measured", "in combination", "partly", "from prior"}


def test_drives_of_a_joint_without_equations_are_from_the_prior(outcome, capsys):
    first, second, *others = outcome.estimate.information.channels
    channels = (first, replace(second, r_factor=np.zeros_like(second.r_factor), count=0), *others)
    information = replace(outcome.estimate.information, channels=channels)
    report = report_content(replace(outcome, estimate=replace(outcome.estimate, information=information)))
    for index, joint in enumerate(report["joints"]):
        for term, deviation in joint["standard_deviation"].items():
            assert all((value is None) == (index == 1) for value in (joint[term], deviation, *joint["interval"][term]))
    print_report(report)
    terms = len(report["joints"][1]["standard_deviation"])
    assert render_page(report).count(">from prior</td>") == capsys.readouterr().out.count(" from prior ") == terms


def test_coverage_names_every_joint_and_what_to_move_next(outcome):
    report = report_content(outcome)
    report["coverage"][1]["advice"] = "turn it more often"
    text = section(render_page(report), "coverage")
    for name in outcome.estimate.model.joint_names:
        assert f'<th scope="row">{name}</th>' in text
    assert "reversals" in text and "speed used" in text
    assert re.search(f"<b>{outcome.estimate.model.joint_names[1]}</b>: .*; turn it more often[.]</li>", text)


def test_changes_of_the_urdf_are_shown_attribute_by_attribute(page, outcome):
    text, changes = section(page, "urdf"), report_content(outcome)["urdf_changes"]
    assert f"{len(changes)} attributes of calibrated.urdf differ" in text
    for change in changes:
        assert f'- {change["attribute"]}="{change["before"]}"' in text
        assert f'+ {change["attribute"]}="{change["after"]}"' in text


def test_health_has_a_row_for_every_recording(page, outcome):
    text = section(page, "health")
    for each in outcome.health:
        assert f'<th scope="row">{each.figures["name"]}</th>' in text
    assert all(f'data-label="{words}"' in text for words in ("rate [Hz]", "jitter", "gaps", "cutoff [Hz]"))
    assert "Delay of effort after motion" in text


def test_the_command_that_made_it_can_be_run_again(outcome):
    report = report_content(outcome)
    command = "inertid identify run1_bag --urdf 'my robot.urdf' --output result"
    report["provenance"]["command"] = command
    assert f"<pre><code>{command}</code></pre>" in section(render_page(report), "provenance")


def test_a_residual_has_a_scale_of_its_own(outcome):
    """However wrong the URDF is, the residual is drawn as large."""

    def residual(curves):
        (_, drawing), *_ = prediction_plots(curves, list(outcome.estimate.model.joint_names), "N m")
        lines = re.findall(r'<path d="([^"]*)"[^>]*var\(--calibrated\)[^>]*>', drawing)
        assert len(lines) == 2  # predicted torque, and below it the residual
        return lines[1]

    curves = Curves.from_outcome(outcome).predictions[0]
    assert residual(curves) == residual(replace(curves, given=100 * curves.given))


def test_cells_name_their_columns_on_narrow_screens(page):
    """Tables become lists there: every cell has the name of its column, and the style sheet shows it."""
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    narrow = re.search(r"@media screen and \(max-width: (\d+)px\) \{(.*?)\n\}", page, re.S)
    assert narrow and int(narrow[1]) >= 400 and "content: attr(data-label)" in narrow[2]
    tables = re.findall(r'<table class="rows[^>]*>(.*?)</table>', page, re.S)
    cells = [cell for table in tables for cell in re.findall(r"<td[^>]*>(?!\s*<svg)", table)]
    assert len(cells) > 100 and [cell for cell in cells if "data-label=" not in cell] == []
    assert [table for table in re.findall(r"<table[^>]*>", page) if 'class="rows' not in table] == []


def test_reasons_are_followed_by_what_to_do(outcome):
    assessment = replace(outcome.assessment, gate=GateDecision.from_findings([NOT_VALIDATED]))
    report = report_content(replace(outcome, validation=None, assessment=assessment))
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
    curves = Curves.from_outcome(outcome)
    (tmp_path / "curves.npz").write_bytes(curves.to_bytes())
    again = Curves.read(tmp_path / "curves.npz")
    assert [each.joint for each in again.friction] == [each.joint for each in curves.friction]
    np.testing.assert_allclose(again.predictions[0].measured, curves.predictions[0].measured, rtol=1e-6)
    assert again.spectra[1].cutoff_hz == curves.spectra[1].cutoff_hz
    (tmp_path / "curves.npz").write_bytes(b"cut")
    assert Curves.read(tmp_path / "curves.npz") == Curves() == Curves.read(tmp_path / "none.npz")


def test_terms_are_those_of_the_glossary(page):
    known = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"<dt>(.*?)</dt>", section(page, "glossary"))
    assert len(terms) > 10 and [term for term in terms if f"\n| {term} |" not in known] == []


def test_drawings_are_small_and_take_the_colours_of_the_page():
    def draw(figure):
        from matplotlib.lines import Line2D

        figure.add_artist(Line2D([0, 0.5, 1], [0, 1, 0], color="#060606", transform=figure.transFigure))

    drawing = svg(100, 50, "a < b", draw)
    assert drawing.startswith('<svg viewBox="0 0 100 50" font-size="10" role="img" aria-label="a &lt; b">')
    assert "var(--calibrated)" in drawing and ' id="' not in drawing and "<defs" not in drawing
    assert 'd="M 0 50 L 50 0 L 100 50 "' in drawing


def test_ends_of_a_narrow_interval_differ():
    assert _interval(1.4996, 1.5004) == "1.4996 to 1.5004" and _interval(0.0, 0.0) == "0 to 0"
