"""Many recordings of a robot, and many robots of a model.

- ``bag_information``: information of one bag with its own noise, and the joint information of a robot's bags.
- ``bag_effects``: friction and masses of every bag beside bodies that all bags share.
- ``random_effects``: regression of estimates with errors of their own and scatter beside them.
- ``drift``: trend and change points of a parameter over time, both with intervals.
- ``hierarchy``: normal distribution of parameters between robots, by restricted maximum likelihood.
- ``model_distribution``: that distribution in base parameters, and as the prior of a robot.
- ``outlying_robots``: robots that differ from the others of their model, at a stated rate of false alarms.
- ``multiple_tests``: levels of many tests together.

It may import ``assessment`` and the rooms below it.
"""
