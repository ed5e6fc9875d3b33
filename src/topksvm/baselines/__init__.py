"""The methods that the paper compares with, as estimators with the same methods as ours."""

__all__: list[str] = []
