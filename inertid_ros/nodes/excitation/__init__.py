"""The excitation node: plans exciting motions and moves the robot along them, to rest whatever fails.

How a goal becomes motion:

1. ``node.Excitation``, a lifecycle node, hands transitions, goals and states to its ``state_machine.StateMachine``,
   and ticks it every ``tick_s`` on the steady clock. The machine decides; the node only translates.
2. Armed, it makes a ``goal.ExcitationGoal`` of a goal of ``~/excite``. That collects joint states, checks robot and
   recorder, and has ``app.excitation_job.prepare_motion`` plan in another process, which returns the plan with an
   ``excitation.execution.HorizonTable``: the approach, the motion, and a verified brake for every phase.
3. The goal checks the robot again and starts an ``excitation.execution.Supervisor``.
4. At every tick the joint states that have come are taken. Then the supervisor asks the state monitor and the lease for
   a fault, and ``MotionExecution`` which phase is due and where to brake. The table turns these into a ``Horizon``: the
   next points, ending at rest.
5. ``commander`` sends the horizon as a trajectory or an action goal, or streams its position.
6. A fault, a cancel or a missing tick ends in a brake from the table; the goal ends when the robot is at rest.

Files: ``node``; without ROS ``state_machine`` and ``goal``, the steps of a goal; ``messages``, what is answered;
``robot_interface``, what is received from the robot beside what :mod:`inertid_ros.nodes.hardware` has, with
``speed_scaling``; ``commander``; ``diagnostics``; ``parameters``.
"""
