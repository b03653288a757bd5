"""Reports: results and motions as files and pages; renders, computes nothing.

- ``report_content``: content of report.json.
- ``results``: the result directory, written and read back.
- ``pages``: results and planned motions as HTML pages.
- ``fleet_page``: the overview of a fleet.
- ``plots``: their plots as SVG.

It may import ``core``, ``config``, ``robot``, ``kinematics``, ``dynamics``, ``data``, ``regressors``,
``identification``, ``excitation`` and ``simulation``.
"""
