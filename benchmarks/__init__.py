"""Everything that measures speed: ``python -m benchmarks --help`` in the root of the project.

One file per command. Objectives, data sets and the solvers of the race against peers are objects,
as in benchopt: a solver returns weights, and one judge in float64 says what they are worth.
"""
