"""``inertid perturb``: perturb a URDF by point masses."""

import argparse
from pathlib import Path

import numpy as np

from inertid_ros.cli.printing import Columns, deliver, print_records
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.simulation import PerturbationOptions
from inertid_ros.config.structuring import structure
from inertid_ros.core.inertial_parameters import geodesic_distance
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.report.report_content import records
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import load_model

from .settings import configuration, inputs

_LINK_COLUMNS: Columns = (
    ("link", "name"), ("mass [kg]", "mass"), ("given", "given_mass"), ("distance", "geodesic_distance"))


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    check_file(options.output, options.force, inputs(options))
    config = configuration(options, Configuration)
    model = load_model(Path(options.urdf), config.robot)
    changes = {} if options.mass_uncertainty is None else {"mass_uncertainty": options.mass_uncertainty}
    perturbation = structure(PerturbationOptions, changes, "command line")
    bodies = perturb(model, np.random.default_rng(options.seed), perturbation)
    write_file(options.output, write_urdf(model, bodies).encode(), options.force)
    distance = geodesic_distance(bodies, model.body_prior)
    masses = {"mass": bodies[:, 0], "given_mass": model.body_prior[:, 0]}
    links = records({"name": model.link_names, **masses, "geodesic_distance": distance})
    content = {"output": options.output, "seed": options.seed, "links": links}
    return deliver(options, content, lambda: print_records("Links", _LINK_COLUMNS, links), options.output)
