# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package."""

from ._enums import Status


class Error(Exception):
    """A call or a work failed. Its text says what failed, why, and how to fix it."""

    def __init__(self, status, message):
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self):
        return self.message


class TimedOut(Error, TimeoutError):
    """Something did not happen in the time given."""


class InvalidArgument(Error, ValueError):
    """An argument is invalid."""


class NotFound(Error, LookupError):
    """A name is not published."""


_KINDS = {
    Status.TIMED_OUT: TimedOut,
    Status.INVALID_ARGUMENT: InvalidArgument,
    Status.NOT_FOUND: NotFound,
}


def error_of(value, message):
    """Returns the exception for a status of the library."""
    status = Status(value)
    return _KINDS.get(status, Error)(status, message)
