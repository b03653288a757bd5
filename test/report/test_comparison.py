"""Two results of one robot compared, by the command and in notebooks."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.recordings.synthetic_calibration import calibrated_case, synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.cli import main as cli
from inertid_ros.report.results import Result, comparison_content


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Folder with a (fitted to one recording), b (to the other one), and other (of another robot)."""
    folder = tmp_path_factory.mktemp("results")
    case, outcome = calibrated_case()
    outcome.save(folder / "a")
    calibrate(case.given, case.recordings[1:]).save(folder / "b")
    other = synthetic_case(4, joints=2, recordings=1, duration=8.0)
    calibrate(other.given, other.recordings).save(folder / "other")
    return folder


def test_differences_are_told(results, capsys, tmp_path):
    pair = ["--compare", str(results / "a"), str(results / "b")]
    assert cli.main(["report", *pair, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    model = calibrated_case()[0].given
    assert [link["name"] for link in content["links"]] == list(model.link_names)
    assert set(content["torque_difference"]) == set(model.joint_names)
    assert max(content["torque_difference"].values()) < 0.02  # both are good
    found = [abs(change["deviations"] or 0) for change in content["parameters"]]
    assert found == sorted(found, reverse=True) and found[0] < 6
    assert cli.main(["report", *pair, "--html", str(tmp_path / "page.html")]) == 0
    printed, page = capsys.readouterr().out, (tmp_path / "page.html").read_text()
    for text in (printed, page):
        assert "on different data" in text and all(name in text for name in model.link_names)
    assert len(page) < 50_000


def test_errors_on_the_same_files_can_be_compared_whatever_their_paths(results):
    first = Result.load(results / "a")
    moved = json.loads(json.dumps(first.report))
    moved["validation"]["recordings"] = ["elsewhere/run2"]
    for source in moved["provenance"]["recordings"]:
        source["name"] = "elsewhere/" + source["name"]
    assert comparison_content(first, replace(first, report=moved))["same_data"]
    moved["provenance"]["cutoff_hz"] *= 2
    assert not comparison_content(first, replace(first, report=moved))["same_data"]


def test_a_result_does_not_differ_from_itself(results, capsys):
    shutil.copytree(results / "a", results / "copy", dirs_exist_ok=True)
    assert cli.main(["report", "--compare", str(results / "a"), str(results / "copy"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["torque_difference"].values()) == {0.0}
    assert all(link["distance"] == pytest.approx(0.0, abs=1e-6) for link in content["links"])


def test_results_of_two_robots_are_refused(results, capsys):
    assert cli.main(["report", "--compare", str(results / "a"), str(results / "other")]) == 2
    assert "belongs to another robot than" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["a", "--compare", "a", "b"]])
def test_one_result_or_two(results, more, capsys, monkeypatch):
    monkeypatch.chdir(results)
    assert cli.main(["report", *more]) == 2
    assert "name one result directory, or two with --compare" in capsys.readouterr().err


def test_a_page_is_made_again_with_its_plots(results, tmp_path):
    assert cli.main(["report", str(results / "a"), "--html", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text() == (results / "a" / "report.html").read_text()


def test_notebooks_show_verdict_errors_and_links(results):
    outcome = calibrated_case()[1]
    for shown in (outcome._repr_html_(), Result.load(Path(results / "a"))._repr_html_()):
        assert outcome.message in shown and "<script" not in shown
        assert all(name in shown for name in (*outcome.estimate.model.link_names, *outcome.estimate.model.joint_names))
