"""Reports: results and motions as files and pages; renders, computes nothing.

- ``report_content``: content of report.json.
- ``results``: the result directory, written and read back.
- ``result_page``, ``torque_plot``: the page of a result.
- ``motion_page``, ``motion_plots``: the page of a planned motion.

It may import ``core``, ``config``, ``robot``, ``kinematics``, ``dynamics``, ``data``, ``regressors``,
``identification``, ``excitation`` and ``simulation``.
"""
