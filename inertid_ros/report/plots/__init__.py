"""Plots of pages as SVG, drawn by Matplotlib.

- ``drawing``: small plots that scale with the page and take its colours.
- ``prediction_plots``, ``friction_plots``, ``spectrum_plots``, ``ellipsoid_plots``: of results.
- ``motion_plots``: of planned motions.
"""
