"""A fleet as a whole: what is computed again, what one robot's trouble costs the others, and what is told of it."""

import errno
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.fleet import InlineCluster, write_catalogue, write_fleet

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core import outputs
from inertid_ros.core.errors import OutputError
from inertid_ros.data.files.loading import read_npz, write_npz
from inertid_ros.fleet.catalogue import FleetError, read_catalogue
from inertid_ros.fleet.jobs import fleet_configuration
from inertid_ros.fleet.results import fleet_tables
from inertid_ros.fleet.run import run_fleet

ROBOTS, BAGS = 3, 1
CONFIGURATION = fleet_configuration(Configuration(identify=IdentifyOptions(remove_delay=False)))


def run(folder, output="output", configuration=CONFIGURATION):
    """Outcome, and how many tasks there were."""
    cluster = InlineCluster()
    outcome = run_fleet(read_catalogue(folder / "catalogue.yaml"), configuration, folder / output, cluster)
    return outcome, cluster.done


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A fleet after its first run; its folder, its catalogue and the outcome."""
    folder = tmp_path_factory.mktemp("fleet")
    content = write_fleet(folder, ROBOTS, BAGS)
    return folder, content, *run(folder)


@pytest.fixture
def later(first, tmp_path):
    """A copy of that fleet, which a test may change, and its catalogue."""
    shutil.copytree(first[0], tmp_path / "fleet")
    write_catalogue(tmp_path / "fleet", first[1])
    assert run(tmp_path / "fleet")[0].computed_bags == 0  # moved, which costs reading alone
    content = {key: list(value) for key, value in first[1].items()}
    return tmp_path / "fleet", content


def test_everything_is_computed_once_and_estimated(first):
    _, _, outcome, done = first
    assert done == {"bag_job": ROBOTS * BAGS, "robot_job": ROBOTS, "estimate_job": ROBOTS}
    assert not outcome.problems
    assert outcome.computed_bags == ROBOTS * BAGS
    assert not outcome.failed and not outcome.rejected
    for estimate in outcome.estimates.values():
        values = {row["parameter"]: row["value"] for row in estimate["rows"]}
        assert values["joint0.coulomb"] == pytest.approx(0.3, abs=0.02)
        assert values["joint1.viscous"] == pytest.approx(0.4, abs=0.02)


def test_robots_of_a_model_start_from_its_distribution(tmp_path, first):
    assert {row["prior"] for row in fleet_tables(first[2])["robots"]} == {"URDF"}  # too few robots for one
    write_fleet(tmp_path, 4, 1)
    tables = fleet_tables(run(tmp_path)[0])
    assert {row["prior"] for row in tables["robots"]} == {"model"}
    assert {row["model"] for row in tables["models"]} == {"arm"}
    assert all(row["between_deviation"] >= 0.0 and row["within_deviation"] > 0.0 for row in tables["models"])
    assert len(tables["bags"]) == 4


def test_a_second_run_computes_nothing_but_the_last_fits(later):
    outcome, done = run(later[0])
    assert done == {"estimate_job": ROBOTS}
    assert outcome.computed_bags == 0


def test_a_new_bag_costs_only_itself_and_its_robot(later):
    folder, content = later
    recording = read_npz(folder / "R0_0.npz")
    write_npz(replace(recording, effort=recording.effort + 1e-6), folder / "new.npz")
    content["bags"].append({"serial": "R2", "bag": "new.npz", "date": "2026-12-01"})
    write_catalogue(folder, content)
    outcome, done = run(folder)
    assert done == {"bag_job": 1, "robot_job": 1, "estimate_job": ROBOTS}
    assert [bag.bag.serial for bag in outcome.bags if bag.computed] == ["R2"]


def test_a_file_with_another_date_and_the_same_content_is_not_computed_again(later):
    folder, _ = later
    os.utime(folder / "R1_0.npz", (1, 1))
    outcome, done = run(folder)
    assert done["bag_job"] == 1  # it is read
    assert outcome.computed_bags == 0


def test_other_options_and_another_urdf_are_other_results(later):
    folder, content = later
    (folder / "new.urdf").write_text((folder / "robot.urdf").read_text() + "\n")
    content["robots"][0] = {**content["robots"][0], "urdf": "new.urdf"}
    write_catalogue(folder, content)
    assert run(folder)[1]["bag_job"] == BAGS


def test_trouble_of_one_robot_is_one_line_and_the_rest_goes_on(later):
    folder, content = later
    shutil.copy(folder / "R0_0.npz", folder / "good.npz")
    (folder / "R0_0.npz").write_bytes(b"PK\x03\x04 damaged")  # a corrupt bag
    (folder / "R1_0.npz").unlink()  # a missing file
    (folder / "R2_0.npz").write_text("<!DOCTYPE html><html>log in</html>")
    content["robots"].append({"serial": "R3", "model": "arm", "urdf": "robot.urdf"})
    content["bags"].append({"serial": "R3", "bag": "good.npz", "date": "2026-01-01"})
    content["robots"].append({"serial": "X", "model": "other", "urdf": "none.urdf"})
    content["bags"].append({"serial": "X", "bag": "good.npz", "date": "2026-01-01"})
    write_catalogue(folder, content)
    outcome, _ = run(folder)
    lines = [str(problem) for problem in outcome.problems]
    assert len(lines) == 4
    assert all("\n" not in line for line in lines)
    expected = {"R0": "cannot be read", "R1": "no such file", "R2": "is a web page", "X": "no such file"}
    for beginning, words in expected.items():
        assert any(line.startswith(beginning) and words in line for line in lines), (beginning, lines)
    assert outcome.failed
    assert sorted(outcome.estimates) == ["R3"]
    assert [bag.bag.serial for bag in outcome.bags if bag.used] == ["R3"]


def test_a_wrong_urdf_for_a_serial_is_told(later):
    folder, content = later
    text = (folder / "robot.urdf").read_text()
    (folder / "wrong.urdf").write_text(text.replace("joint1", "elbow"))
    content["robots"][2] = {**content["robots"][2], "urdf": "wrong.urdf"}
    write_catalogue(folder, content)
    outcome, _ = run(folder)
    (line,) = map(str, outcome.problems)
    assert line.startswith("R2")
    assert "wrong.urdf: has other joints than most robots of model 'arm'; correct the URDF or the model" in line
    assert sorted(outcome.estimates) == ["R0", "R1"]


def test_known_payloads_are_taken_off(later):
    folder, content = later
    bags = [bag | {"payload": "box"} if bag["serial"] == "R0" else bag for bag in content["bags"]]
    box = {"link": "link1", "mass": 0.05, "com": [0.3, 0.2, 0.0]}
    content |= {"bags": bags, "payloads": {"box": box}}
    write_catalogue(folder, content)
    outcome, done = run(folder)
    assert done["bag_job"] == BAGS
    moments = {serial: {row["parameter"]: row["value"] for row in estimate["rows"]}["link1.mcx"]
        for serial, estimate in outcome.estimates.items()}
    others = np.mean([moments[serial] for serial in ("R1", "R2")])
    # Nothing was held in truth, so that what is taken off is missing.
    assert moments["R0"] == pytest.approx(others - 0.05 * 0.3, abs=0.005)


def test_a_full_disk_costs_the_results_that_do_not_fit_and_nothing_else(first, tmp_path, monkeypatch):
    folder = tmp_path / "fleet"
    folder.mkdir()
    write_fleet(folder, 1, 1)
    written = outputs.move_file

    def full(file, target, force):
        if "robots" in str(target):
            return written(file, target, force)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(outputs, "move_file", full)
    outcome, _ = run(folder)
    (line,) = map(str, outcome.problems)
    assert "1 results cannot be written (No space left on device); free space and run again" in line
    assert outcome.failed
    assert list(outcome.estimates) == ["R0"]


def test_a_folder_with_something_else_is_not_written_to(later):
    folder, _ = later
    with pytest.raises(OutputError, match="exists and is not empty; choose another path"):
        run(folder, ".")


def test_a_folder_of_bags_is_no_folder_of_results(first, tmp_path):
    write_fleet(tmp_path, 1, 1)
    (tmp_path / "mine" / "bags").mkdir(parents=True)
    (tmp_path / "mine" / "fleet.json").write_text("mine")
    (tmp_path / "link").symlink_to("mine")
    for name, reason in (("mine", "exists and is not empty"), ("link", "is a link")):
        with pytest.raises(OutputError, match=reason):
            run(tmp_path, name)
    assert [path.name for path in (tmp_path / "mine" / "bags").iterdir()] == []


@pytest.mark.parametrize(
    "options", [{"equations": "momentum"}, {"drive_gains": True}, {"prior": "result"}, {"estimator": "ols"}]
)
def test_options_that_fleets_do_not_have_are_refused(options):
    with pytest.raises(FleetError, match="is not supported for fleets"):
        fleet_configuration(Configuration(identify=IdentifyOptions(**options)))
