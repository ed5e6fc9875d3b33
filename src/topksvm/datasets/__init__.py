"""Data to try the classifiers on."""

__all__: list[str] = []
