"""Two results of one robot as tables."""

from collections.abc import Mapping
from typing import Any

from .output import number, percent, print_table

_SHOWN = 10  # parameters


def print_comparison(content: Mapping[str, Any]) -> None:
    """Print verdicts and errors, torque, links, and the parameters that differ most."""
    results = content["results"]
    for name, result in zip("AB", results, strict=True):
        error = percent(result["relative_error"])
        on = ", ".join(result["recordings"])
        print(f"{name}: {result['directory']}: {result['verdict']}, relative error {error} on {on}")
    if not content["same_data"]:
        print("their errors are on different data, and cannot be compared with each other")
    if content["torque_difference"]:
        rows = [(joint, percent(share)) for joint, share in content["torque_difference"].items()]
        print_table("Difference of predicted torque over the robot's range", ("joint", "of torque"), rows)
    print_table(
        "Links",
        ("link", "mass A [kg]", "mass B [kg]", "com A [m]", "com B [m]", "geodesic distance"),
        (
            (
                link["name"],
                *(number(mass) for mass in link["mass"]),
                *(" ".join(number(value, 3) for value in com) for com in link["com"]),
                number(link["distance"], 3),
            )
            for link in content["links"]
        ),
    )
    print_table(
        "Parameters that differ most",
        ("parameter", "A", "B", "standard deviations"),
        (
            (each["name"], number(each["first"]), number(each["second"]), number(each["deviations"], 2))
            for each in content["parameters"][:_SHOWN]
        ),
    )
