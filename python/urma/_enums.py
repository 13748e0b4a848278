# SPDX-License-Identifier: Apache-2.0
"""The enumerations of the package. Their values are those of the library."""

import enum

from . import _urma


class Status(enum.IntEnum):
    """How a work ended, or why a call failed."""

    OK = 0
    FLUSHED = 1
    UNKNOWN = 2
    BAD_WORK = 3
    REMOTE_ACCESS = 4
    REMOTE_UNSUPPORTED = 5
    RECEIVER_NOT_READY = 6
    RECEIVE_TOO_SMALL = 7
    PEER_UNREACHABLE = 8
    PEER_RESTARTED = 9
    WOULD_BLOCK = 10
    INVALID_ARGUMENT = 11
    NOT_FOUND = 12
    ADDRESS_IN_USE = 13
    PERMISSION_DENIED = 14
    VERSION_MISMATCH = 15
    NO_RESOURCES = 16
    UNSUPPORTED = 17
    CLOSED = 18
    FORKED = 19
    TIMED_OUT = 20
    IO_ERROR = 21
    NOT_FENCED = 22

    def __str__(self):
        return self.name.lower()

    @property
    def meaning(self):
        """Says what happened, and whether the work was executed."""
        return _urma.explain(self.value)[0]

    @property
    def causes(self):
        """Likely causes, the likeliest first."""
        return _urma.explain(self.value)[1]

    @property
    def cure(self):
        """Says what to do."""
        return _urma.explain(self.value)[2]


class Operation(enum.IntEnum):
    """The kinds of works."""

    WRITE = 0
    READ = 1
    SEND = 2
    RECEIVE = 3
    ATOMIC = 4


class Rights(enum.IntFlag):
    """The accesses that peers may make to a segment."""

    LOCAL_ONLY = 0
    READ = 1
    WRITE = 2
    ATOMIC = 4


class AtomicDomain(enum.IntEnum):
    """Where the atomics on a segment are executed."""

    PROCESSOR = 0
    ENGINE = 1
    DEVICE = 2


class Threads(enum.IntEnum):
    """The threads that run a device."""

    AUTOMATIC = 0
    SERVED = 1
    INLINED = 2


class Order(enum.IntEnum):
    """The earlier works of its Jetty that a work waits for at its target."""

    NONE = 0
    RELAXED = 1
    STRONG = 2


class Fence(enum.IntEnum):
    """The earlier works that must have ended before a work is sent."""

    NONE = 0
    READS = 1
    ALL = 2


class ServiceMode(enum.IntEnum):
    """The side that keeps strong works in order."""

    AUTOMATIC = 0
    INITIATOR = 1
    TARGET = 2
    UNRELIABLE = 3


class Update(enum.IntEnum):
    """How atomic_load and atomic_store change a word."""

    ADD = 0
    CLEAR = 1
    EXCLUSIVE_OR = 2
    SET = 3
    SIGNED_MAX = 4
    SIGNED_MIN = 5
    UNSIGNED_MAX = 6
    UNSIGNED_MIN = 7


class EventKind(enum.IntEnum):
    """The kinds of events."""

    PEER_LOST = 0
    PEER_BACK = 1
    PATH_LOST = 2
    PATH_BACK = 3
    PEER_RESTARTED = 4
    PEER_LEFT = 5
    JETTY_ERROR = 6
    BAD_TOKENS = 7
    GUESSING = 8
    MEMORY_MISSING = 9
    MISSED = 10
    CLOSED = 11
    PATH_ADDED = 12
    PATH_REMOVED = 13

    def __str__(self):
        return self.name.lower()
