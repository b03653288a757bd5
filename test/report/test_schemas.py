"""The schemas: valid themselves, as strict as they say, and what the documentation shows."""

import json
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator
from support.paths import ROOT
from support.recordings.synthetic_calibration import calibrated_case
from support.written_files import violations

from inertid_ros.report.report_content import report_content
from inertid_ros.report.results import SCHEMAS, schema_of


@pytest.mark.parametrize("file", SCHEMAS)
def test_a_schema_is_one_and_describes_every_field(file):
    schema = schema_of(file)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == file
    for name, field in schema["properties"].items():
        assert field.get("description"), name


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verdict": "perhaps"}, "verdict"),
        ({"surprise": 1}, "surprise"),
        ({"links": [{"name": "arm"}]}, "links/0"),
        ({"residual_deviation": ["much"]}, "residual_deviation/0"),
    ],
)
def test_what_has_another_form_is_found(change, told):
    report = report_content(calibrated_case()[1])
    assert violations("report.json", json.dumps(report).encode()) == []
    assert any(told in line for line in violations("report.json", json.dumps(report | change).encode()))


def test_the_page_of_the_documentation_is_up_to_date():
    command = [sys.executable, ROOT / "scripts" / "schema_page.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
