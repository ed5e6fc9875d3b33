"""What pytest leaves alone here: files that are made, Sphinx's own, code that has its tests."""

collect_ignore = ["_build", "_ext", "_templates", "auto_examples", "code", "conf.py", "generated"]
