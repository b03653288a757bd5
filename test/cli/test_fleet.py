"""``inertid fleet``: files, exit status and lines, on a cluster within this process."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pyarrow.parquet
import pytest
from support.fleet import InlineCluster, write_catalogue, write_fleet

from inertid_ros.cli import fleet, main as cli
from inertid_ros.data.files.loading import load_recording, write_npz


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    content = write_fleet(folder, 1, 1)
    content["bags"].append({"serial": "R0", "bag": "none.npz", "date": "2026-05-01"})
    return folder, content


@pytest.fixture
def run(folder, monkeypatch, capsys):
    @contextmanager
    def inline(scheduler, workers):
        yield InlineCluster()

    monkeypatch.setattr(fleet, "cluster", inline)

    def command(*arguments):
        status = cli.main(["fleet", str(folder[0] / "catalogue.yaml"), "--output", str(folder[0] / "out"), *arguments])
        return status, *capsys.readouterr()

    return command


def test_results_are_files_and_one_json_object(run, folder):
    status, out, err = run("--json")
    assert status == 0
    assert err == ""
    content = json.loads(out)
    assert content["bags_computed"] == 1
    assert json.loads((folder[0] / "out" / "fleet.json").read_text())["robots_estimated"] == 1
    assert (folder[0] / "out" / "fleet.html").read_text().startswith("<!DOCTYPE html>")
    rows = pyarrow.parquet.read_table(folder[0] / "out" / "robots.parquet").to_pylist()
    assert {row["serial"] for row in rows} == {"R0"}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    for name in ("models", "drift", "bags"):
        assert (folder[0] / "out" / f"{name}.parquet").is_file()


def test_what_cannot_be_used_is_a_line_and_status_2(run, folder):
    write_catalogue(*folder)
    status, out, err = run("-q")
    assert status == 2
    assert "1 of 1 robots estimated, 1 of 2 bags used, 0 computed in this run" in out
    (line,) = err.splitlines()
    assert line.startswith("inertid: R0: ") and line.endswith("none.npz: no such file; check the catalogue")


def test_a_bag_that_is_not_to_be_used_is_told_with_status_3(run, tmp_path, capsys):
    """All could be read, and the rest of the fleet is done."""
    write_fleet(tmp_path, 1, 2)
    bag = load_recording(tmp_path / "R0_1.npz")
    write_npz(replace(bag, effort=1000.0 * bag.effort), tmp_path / "R0_1.npz")
    status = cli.main(["fleet", str(tmp_path / "catalogue.yaml"), "--output", str(tmp_path / "out"), "--json"])
    out, err = capsys.readouterr()
    assert status == 3
    content = json.loads(out)
    assert content["robots_estimated"] == 1 and content["bags_used"] == 1
    assert "R0_1" in err and "effort" in err


def test_no_catalogue_and_options_that_fleets_do_not_have_are_one_line(run, folder, capsys):
    status, _, err = run("--set", "identify.drive_gains=true")
    assert status == 2
    assert err.count("\n") == 1 and "is not supported for fleets" in err
    assert cli.main(["fleet", str(folder[0] / "no.yaml"), "--output", str(folder[0] / "other")]) == 2
    assert "no such catalogue" in capsys.readouterr().err
    assert not (folder[0] / "other").exists()
