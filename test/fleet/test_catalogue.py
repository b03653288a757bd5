"""Catalogues in YAML and Parquet: what is read, and one line for each robot or bag that cannot be used."""

import pyarrow
import pyarrow.parquet
import pytest

from inertid_ros.core.errors import RecordingError
from inertid_ros.fleet.catalogue import FleetError, read_catalogue

GOOD = """
robots:
- {serial: 7, model: arm, urdf: arm.urdf}
- {serial: B, model: arm, urdf: s3://store/arm.urdf}
bags:
- {serial: B, bag: s3://store/b.mcap, date: 2026-02-01T10:00:00Z, payload: box}
- {serial: 7, bag: later, date: 2026-02-01}
- {serial: 7, bag: /bags/first, date: 2026-01-01}
payloads:
  box: {link: hand, mass: 2.0, com: [0.0, 0.0, 0.1]}
"""


@pytest.fixture
def catalogue(tmp_path):
    def read(text):
        (tmp_path / "fleet.yaml").write_text(text)
        return read_catalogue(tmp_path / "fleet.yaml")

    return read


def problems(catalogue):
    return [str(problem) for problem in catalogue.problems]


def test_robots_and_bags_are_read_in_order_of_their_dates(catalogue, tmp_path):
    found = catalogue(GOOD)
    assert not found.problems
    assert {serial: robot.urdf for serial, robot in found.robots.items()} == {"7": str(tmp_path / "arm.urdf"), "B": "s3://store/arm.urdf"}
    assert [bag.url for bag in found.bags] == ["/bags/first", str(tmp_path / "later"), "s3://store/b.mcap"]
    assert found.bags[2].load.mass == 2.0
    assert found.bags[2].day - found.bags[1].day == pytest.approx(10 / 24)


def test_parquet_is_the_same_catalogue(catalogue, tmp_path):
    rows = [
        {"serial": "7", "model": "arm", "urdf": "arm.urdf", "bag": "/bags/first", "date": "2026-01-01"},
        {"serial": "7", "model": "arm", "urdf": "arm.urdf", "bag": "later", "date": "2026-02-01"},
        {
            "serial": "B", "model": "arm", "urdf": "s3://store/arm.urdf", "bag": "s3://store/b.mcap",
            "date": "2026-02-01T10:00:00Z", "payload": "box", "payload_link": "hand", "payload_mass": 2.0,
            "payload_com": [0.0, 0.0, 0.1],
        },
    ]  # fmt: skip
    columns = {key: [row.get(key) for row in rows] for key in rows[-1]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "fleet.parquet")
    assert read_catalogue(tmp_path / "fleet.parquet") == catalogue(GOOD)


@pytest.mark.parametrize("serial", ["0012", "1_000", "12:30"])
def test_a_serial_that_yaml_reads_as_another_number_is_to_be_quoted(serial, catalogue):
    with pytest.raises(FleetError, match=f"has '{serial}' in line 3; quote it"):
        catalogue(GOOD.replace("{serial: 7, model", f"{{serial: {serial}, model"))
    assert "0012" in catalogue(GOOD.replace("serial: 7", "serial: '0012'")).robots


def test_a_payload_without_a_name_is_refused(tmp_path):
    row = {"serial": "7", "model": "arm", "urdf": "arm.urdf", "bag": "b", "date": "2026-01-01", "payload_link": "hand",
        "payload_mass": 2.0}
    pyarrow.parquet.write_table(pyarrow.table({key: [value] for key, value in row.items()}), tmp_path / "fleet.parquet")
    with pytest.raises(FleetError, match="b: has a payload without a name"):
        read_catalogue(tmp_path / "fleet.parquet")


def test_two_robots_of_one_serial_are_left_out_and_the_rest_stays(catalogue):
    found = catalogue(GOOD.replace("bags:", "- {serial: B, model: arm, urdf: other.urdf}\nbags:", 1))
    assert list(found.robots) == ["7"]
    assert len(found.bags) == 2
    (line,) = problems(found)
    assert "two robots have the serial B; correct one, the bags of both are skipped" in line


def test_a_robot_that_is_listed_twice_alike_is_one(catalogue):
    assert not catalogue(GOOD.replace("bags:", "- {serial: B, model: arm, urdf: s3://store/arm.urdf}\nbags:")).problems


@pytest.mark.parametrize(
    ("bag", "line"),
    [
        ("{serial: 7, bag: x, date: yesterday}", "x: date 'yesterday' is not ISO 8601, such as 2026-05-31"),
        ("{serial: Z, bag: x, date: 2026-01-01}", "serial Z is not in robots; add it"),
        ("{serial: 7, bag: x, date: 2026-01-01, payload: ball}",
            "payload 'ball' is not known; describe it in payloads"),
        ("{serial: 7, bag: later, date: 2026-01-01}", "is listed twice for 7 and would count twice"),
        ("{serial: 7, bag: x}", "bags, number 4: date is missing"),
        ("{serial: 7, bag: x, date: 2026-01-01, weight: 3}", "weight is not an option"),
        ("nothing", "bags, number 4 is not a mapping; give serial, bag, date, payload"),
    ],
)
def test_a_bag_that_cannot_be_used_is_one_line(catalogue, bag, line):
    found = catalogue(GOOD.replace("payloads:", f"- {bag}\npayloads:"))
    assert len(found.bags) == 3
    (told,) = problems(found)
    assert line in told
    assert "\n" not in told


def test_a_payload_that_cannot_be_refuses_the_bags_that_have_it(catalogue):
    found = catalogue(GOOD.replace("mass: 2.0", "mass: -1"))
    assert len(found.bags) == 2
    assert len(found.problems) == 2
    assert "payloads.box: mass is -1" in problems(found)[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [", "is not YAML"),
        ("robots: []", "has no robots and bags; list both"),
        ("robots: {}\nbags: []", "robots is not a list"),
        ("robots: []\nbags: []\ncars: []", "'cars' is not known; known keys are robots, bags, payloads"),
    ],
)
def test_what_is_no_catalogue_is_refused(catalogue, text, line):
    with pytest.raises(FleetError, match="fleet.yaml: ") as refused:
        catalogue(text)
    assert line in str(refused.value)


def test_no_such_catalogue(tmp_path):
    with pytest.raises(FleetError, match="no such catalogue; give a YAML or Parquet file"):
        read_catalogue(tmp_path / "none.yaml")


def test_damaged_parquet(tmp_path):
    (tmp_path / "fleet.parquet").write_bytes(b"PAR1" + b"x" * 50)
    with pytest.raises(RecordingError, match="fleet.parquet: is damaged"):
        read_catalogue(tmp_path / "fleet.parquet")
