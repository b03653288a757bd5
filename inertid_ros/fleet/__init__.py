"""Fleets: many robots with many bags each, on a Dask cluster."""
