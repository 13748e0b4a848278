# SPDX-License-Identifier: Apache-2.0
"""Memory and messages of other processes: the Unified Bus programming model.

    with urma.open() as device:
        found = device.import_("urma://localhost/inbox", timeout=10)
        jetty = device.jetty()
        jetty.write(b"hello", found.segment, to=found.jetty, immediate=42).wait(10)
"""

import atexit as _atexit
import weakref as _weakref

from ._enums import (AtomicDomain, EventKind, Fence, Operation, Order, Rights, ServiceMode, Status,
                     Threads, Update)
from ._errors import Error, InvalidArgument, NotFound, TimedOut
from . import _urma
from ._urma import (Arrival, Completion, Device, Event, Imported, Jetty, Lane, RemoteJetty,
                    RemoteSegment, Segment, Work, __version__)

__all__ = [
    "Arrival", "AtomicDomain", "Completion", "Device", "Error", "Event", "EventKind", "Fence",
    "Imported", "InvalidArgument", "Jetty", "Lane", "NotFound", "Operation", "Order",
    "RemoteJetty", "RemoteSegment", "Rights", "Segment", "ServiceMode", "Status", "Threads",
    "TimedOut", "Update", "Work", "__version__", "open",
]

_open_devices: "_weakref.WeakSet[Device]" = _weakref.WeakSet()


def open(device="cxl:", **options):
    """Opens a device: "cxl:", "udp:", "udp:10.0.0.5", and other device strings."""
    opened = _urma.open(device, **options)
    _open_devices.add(opened)
    return opened


@_atexit.register
def _close_all():
    # Otherwise threads of a device would run while the process ends.
    for device in list(_open_devices):
        device.close()


for _class in (Arrival, Completion, Device, Event, Imported, Jetty, Lane, RemoteJetty,
               RemoteSegment, Segment, Work):
    _class.__module__ = "urma"
del _class
