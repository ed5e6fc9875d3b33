"""The kinds of trials of tools/fuzz.py; each has ``run(seed, end, jobs, tell)``."""
