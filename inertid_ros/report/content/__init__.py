"""Parts of report.json that more than the parameters are needed for.

- ``details_content``: intervals, ellipsoids, margins, coverage, changes of the URDF, health of the data.
"""
