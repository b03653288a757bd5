"""What workers of a fleet do.

- ``bag_job``: one bag to information.
- ``robot_job``: the bags of one robot to joint information and drift.
- ``estimate_job``: the result of one robot, which starts from the distribution of its model.
- ``fetching``: bags and URDFs from paths and from URLs of object stores.
- ``fleet_configuration``: options of all fits of a fleet, and the key of what they give.
- ``errors``: errors, and optional packages.

It may import all that ``app`` may, and ``app``.
"""
