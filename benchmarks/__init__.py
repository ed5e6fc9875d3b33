"""Time to an equal objective and to an equal accuracy, against peers; see ``docs/benchmarks.rst``.

Objectives, data sets and solvers are objects, as in benchopt: a solver returns weights, and one
judge in float64 says what they are worth. Run ``python -m benchmarks --help`` in the root of the
project.
"""
