"""Fleets: many robots with many bags each, on a Dask cluster.

- ``jobs``: what a worker does for one bag or one robot.
- ``catalogue``, ``catalogue_reading``: robots and bags, from YAML or Parquet.
- ``bag_store``: results of bags and robots in files, by the hash of what they depend on.
- ``cluster``: workers, and tasks on them.
- ``bag_stage``: bags that have changed are computed, the others taken from the store.
- ``model_populations``: robots of a model together.
- ``run``: the whole.
- ``result_tables``, ``content``: results as Parquet, and in short.

It may import all that ``app`` may, and ``app``.
"""
