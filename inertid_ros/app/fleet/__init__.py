"""Fleets: many robots with many bags each, on a Dask cluster.

- ``catalogue``, ``catalogue_reading``: robots and bags, from YAML or Parquet.
- ``fetching``: bags and URDFs from paths and from URLs of object stores.
- ``bag_job``, ``robot_job``, ``estimate_job``: what a worker does for one bag or one robot.
- ``bag_store``: results of bags and robots in files, by the hash of what they depend on.
- ``cluster``: workers, and tasks on them.
- ``model_populations``: robots of a model together.
- ``run``: the whole.
- ``result_tables``: results as Parquet.

It may import all that ``app`` may, and ``app``.
"""
