"""Errors that the user can mend."""


class UserError(Exception):
    """A mistake in the input; its message is one line that says what to do."""
