"""Reports: results and motions as files and pages; renders, computes nothing.

Folders, lowest first: ``content`` (parts of report.json), ``plots`` (drawings of pages as SVG), ``schemas`` (JSON
Schemas of the files written). ``templates`` holds the pages' templates, style sheet and script.

- ``report_content``: content of report.json.
- ``payload_content``: content of payload.json.
- ``curves``: what pages plot, kept beside report.json.
- ``templating``: templates and their filters; ``glossary``: terms that pages explain.
- ``pages``: results and planned motions as HTML pages.
- ``results``: the result directory, written and read back.
- ``comparison``: two results of one robot beside each other.
- ``notebook``: results as notebooks show them.
- ``fleet_page``: the overview of a fleet.

It may import ``core``, ``config``, ``robot``, ``kinematics``, ``dynamics``, ``data``, ``regressors``,
``identification``, ``excitation`` and ``simulation``.
"""
