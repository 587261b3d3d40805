"""The paper's experiments, for any arm and any solvers, and a comparison of solvers.

    homogenization   A: how evenly the twin's tool accelerates in every direction and posture
    convergence      B: one far step of the target
    interpolation    C: the way between the corners of a square
    tracking         D: a moving target; and kp as the dial from smoothing filter to exact inverse kinematics (`dial`)
    solvers          all solvers on one trajectory and on random poses

Each module holds `measure`, which takes a robot and solvers and returns arrays, what the figures are expected to be on
a UR10 and who says so (EXPECTED), and `run`, which is the command: figures, tables and pictures as an `Outcome`.
"""
