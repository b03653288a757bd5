"""Plots of pages as SVG, drawn by Matplotlib.

- ``drawing``: small plots that scale with the page and take its colours.
- ``curve_plots``, ``ellipsoid_plots``: of results.
- ``motion_plots``: of planned motions.
- ``standalone``: drawings as files of their own.
"""
