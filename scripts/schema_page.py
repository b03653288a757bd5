"""Write docs/reference/files.md from the JSON Schemas of the files that the package writes.

python scripts/schema_page.py            write the page
python scripts/schema_page.py --check    exit status 1 if it is out of date
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SCHEMAS = HERE / "inertid_ros" / "report" / "schemas"
PAGE = HERE / "docs" / "reference" / "files.md"
_HEAD = """# Files and their fields

`report.json` and `parameters.yaml` of a result directory and `plan.yaml` of a planned motion have JSON Schemas (draft
2020-12). The package installs them in `inertid_ros/report/schemas`, and the tests check all their results and plans
against them. In Python, `inertid_ros.report.results.schema_of("report.json")` is a schema as a dictionary. A number may
be null if it is not finite or not known, except for the type `number, finite`. A new version may add fields; it renames
a field only with a new `format`. `scripts/schema_page.py` writes this page.
"""
_DEEPEST = 3  # levels of fields


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    text = "\n".join([_HEAD, *map(_section, sorted(SCHEMAS.glob("*.schema.json")))])
    if parser.parse_args().check:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("" if current else f"{PAGE} is out of date; run python scripts/schema_page.py")
        return 0 if current else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


def _section(file: Path) -> str:
    schema = json.loads(file.read_text(encoding="utf-8"))
    rows = [f"| `{name}` | {kind} | {text} |" for name, kind, text in _fields(schema, schema, "", 0)]
    table = "\n".join(["| field | type | meaning |", "| --- | --- | --- |", *rows])
    return f"## {schema['title']}\n\n{schema['description']} Schema: `{file.name}`.\n\n{table}\n"


def _fields(schema: dict[str, Any], root: dict[str, Any], place: str, depth: int) -> Iterator[tuple[str, str, str]]:
    """Yield path, type and meaning of the fields of an object, each followed by the fields of inner objects."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        whole = _resolved(field, root)
        optional = "" if name in required else " (optional)"
        yield place + name, _kind(field, root) + optional, field.get("description", whole.get("description", ""))
        inner, suffix = _inside(whole, root)
        if inner and depth + 1 < _DEEPEST and field.get("$ref", "") not in ("#/$defs/errors",) + _known(depth):
            yield from _fields(inner, root, f"{place}{name}{suffix}.", depth + 1)


def _known(depth: int) -> tuple[str, ...]:
    """Return parts that are shown only at their first occurrence."""
    return ("#/$defs/finding",) if depth else ()


def _inside(field: dict[str, Any], root: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the object of a field or of its list items."""
    if "anyOf" in field:
        return _inside(_resolved(field["anyOf"][0], root), root)
    if field.get("type") == "array":
        items = _resolved(field.get("items", {}), root)
        return (items, "[]") if items.get("properties") else (None, "")
    return (field, "") if field.get("properties") else (None, "")


def _resolved(field: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    name = field.get("$ref", "").rpartition("/")[2]
    return {**root["$defs"][name], **{k: v for k, v in field.items() if k != "$ref"}} if name else field


def _kind(field: dict[str, Any], root: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    name = field.get("$ref", "").rpartition("/")[2]
    if name in ("number", "numbers", "interval", "vector", "matrix", "sha256", "errors", "parameters"):
        return {"sha256": "checksum", "numbers": "list of numbers"}.get(name, name)
    whole = _resolved(field, root)
    if "anyOf" in whole:
        return f"{_kind(whole['anyOf'][0], root)} or null"
    if "enum" in whole:
        return " or ".join(f"`{value}`" for value in whole["enum"])
    if "const" in whole:
        return f"`{whole['const']}`"
    if whole.get("type") == "array":
        return f"list of {_kind(whole.get('items', {}), root)}"
    return {"number": "number, finite", "string": "text", "integer": "whole number", "boolean": "true or false"}.get(
        whole.get("type", ""), "object"
    )


if __name__ == "__main__":
    sys.exit(main())
