# SPDX-License-Identifier: Apache-2.0
"""Works, arrivals and events in asyncio.

A watch polls one completion queue of a Jetty from an event loop. It polls the queue until that is
empty, then arms it, and only then waits for its descriptor: a completion that comes in between
makes arming fail, and the watch polls again.
"""

import asyncio
import os
import weakref

from ._enums import EventKind, Status
from ._errors import Error

_ARMED, _AGAIN, _BUSY, _OVER = range(4)
# So many works that end at once are awaited before other tasks run.
_MOST_AT_ONCE = 16


class _Watch:
    def __init__(self, jetty, arriving, loop):
        self.loop = loop
        self.waiting = 0  # tasks that wait
        self.quick = 0  # works that had ended when they were awaited
        self._jetty = weakref.ref(jetty)
        self._arriving = arriving
        # The library closes its own descriptor when the Jetty ends, maybe in another thread.
        self._descriptor = os.dup(jetty._descriptor(arriving))
        self._reading = False
        self._takers = set()

    async def wait(self, future):
        """Waits for a future that the queue completes."""
        self.waiting += 1
        try:
            if not self._reading:
                self._turn()
            await future
        finally:
            self.waiting -= 1

    def taker(self):
        """Returns a future that is completed when something has arrived."""
        future = self.loop.create_future()
        self._takers.add(future)
        return future

    def in_loop(self, function):
        """Calls the function in the thread of the loop. Any thread calls this."""
        if asyncio._get_running_loop() is self.loop:
            function()
        elif not self.loop.is_closed():
            try:
                self.loop.call_soon_threadsafe(function)
            except RuntimeError:
                pass  # closed meanwhile

    # The Jetty calls these three, in any thread.
    def poll_soon(self):
        if not self.loop.is_closed():
            try:
                self.loop.call_soon_threadsafe(self._turn)
            except RuntimeError:
                pass  # closed meanwhile

    def arrived(self):
        self.in_loop(self._wake_takers)

    def close(self):
        self.in_loop(self._close)

    def _close(self):
        self._read(False)
        self._wake_takers()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self):
        if self._descriptor >= 0 and not self._reading:
            os.close(self._descriptor)

    def _wake_takers(self):
        takers, self._takers = self._takers, set()
        for future in takers:
            if not future.done():
                future.set_result(None)

    def _read(self, reading):
        if reading == self._reading or self._descriptor < 0:
            return
        self._reading = reading
        if reading:
            self.loop.add_reader(self._descriptor, self._ready)
        elif not self.loop.is_closed():
            self.loop.remove_reader(self._descriptor)

    def _ready(self):
        # Without a task that waits, the queue is not armed again.
        if self.waiting == 0:
            self._read(False)
        else:
            self._turn()

    def _turn(self):
        jetty = self._jetty()
        if jetty is None:
            self._close()
            return
        if self.waiting == 0 or self._descriptor < 0:
            return
        turn = jetty._turn(self._arriving)
        self._read(turn == _ARMED)
        if turn == _AGAIN:
            self.loop.call_soon(self._turn)
        elif turn == _OVER:
            self._wake_takers()


def _watch_of(jetty, arriving):
    loop = asyncio.get_running_loop()
    watch = jetty._watch(arriving)
    if watch is not None and watch.loop is loop:
        return watch
    if watch is not None and not watch.loop.is_closed() and watch.waiting > 0:
        raise RuntimeError(
            "tasks of another event loop await this Jetty. Fix: use a Jetty for each loop")
    if watch is not None:
        watch.close()
    watch = _Watch(jetty, arriving, loop)
    jetty._attach(arriving, watch)
    return watch


async def outcome(work):
    """Waits until a work has ended; returns its Completion or raises its failure."""
    jetty = work.jetty
    if not work.done:
        jetty._poll(False)
    if work.done:
        watch = jetty._watch(False)
        if watch is not None:
            watch.quick = (watch.quick + 1) % _MOST_AT_ONCE
            if watch.quick == 0:
                await asyncio.sleep(0)
        return work.wait(0)
    watch = _watch_of(jetty, False)
    future = watch.loop.create_future()

    def complete():
        if not future.done():
            future.set_result(None)

    work.add_done_callback(lambda: watch.in_loop(complete))
    try:
        await watch.wait(future)
    except asyncio.CancelledError:
        work.cancel()
        raise
    return work.wait(0)


class Arrivals:
    """The messages and immediates that arrive at a Jetty, until it is closed."""

    def __init__(self, jetty):
        self._jetty = jetty

    def __aiter__(self):
        return self

    async def __anext__(self):
        jetty = self._jetty
        try:
            while True:
                arrival = jetty._take()
                if arrival is None:
                    jetty._poll(True)
                    arrival = jetty._take()
                if arrival is not None:
                    return arrival
                watch = _watch_of(jetty, True)
                await watch.wait(watch.taker())
        except Error as error:
            if error.status == Status.CLOSED:
                raise StopAsyncIteration from None
            raise


class Events:
    """The events of a device, until it is closed."""

    def __init__(self, device):
        self._device = device

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            event = self._device.next_event()
            if event is None:
                await self._readable()
            elif event.kind == EventKind.CLOSED:
                raise StopAsyncIteration
            else:
                return event

    async def _readable(self):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        # The library closes its own descriptor with the device.
        descriptor = os.dup(self._device._events_descriptor())

        def readable():
            if not future.done():
                future.set_result(None)

        loop.add_reader(descriptor, readable)
        try:
            await future
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
