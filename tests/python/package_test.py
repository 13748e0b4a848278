#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the package urma do what its documents say? With PYTHONPATH=build/dev/python/package."""

import array
import ast
import asyncio
import copy
import gc
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import urma

LIMIT = 10
ROOT = pathlib.Path(__file__).resolve().parents[2]
try:
    import numpy
except ImportError:
    numpy = None


refusals = []  # the texts of all calls that were refused


def name(number=[0]):
    number[0] += 1
    return f"py-{os.getpid()}-{number[0]}"


class Pair(unittest.TestCase):
    """An owner of 64 KiB and a writer, each with a device."""

    DEVICE = "cxl:"
    RIGHTS = urma.Rights.READ | urma.Rights.WRITE | urma.Rights.ATOMIC

    def setUp(self):
        self.owner = urma.open(self.DEVICE, operation_timeout=1)
        self.writer = urma.open(self.DEVICE, operation_timeout=1)
        self.addCleanup(self.owner.close)
        self.addCleanup(self.writer.close)
        self.segment = self.owner.allocate(1 << 16, rights=self.RIGHTS)
        self.inbox = self.owner.jetty(receives=8)
        self.jetty = self.writer.jetty(berths=4)
        self.there = self.writer.import_(self.segment.descriptor).segment
        self.target = self.writer.import_(self.inbox.descriptor).jetty

    def fails(self, kind, call, *words):
        with self.assertRaises(kind) as caught:
            call()
        text = str(caught.exception)
        refusals.append(text)
        for word in ("Fix: ", *words):
            self.assertIn(word, text)
        return caught.exception


class WorksTest(Pair):
    def test_write_read_send_and_immediates(self):
        done = self.jetty.write(b"hello", self.there, 4096, to=self.target, immediate=42,
                                tag="mine").wait(LIMIT)
        self.assertTrue(done.ok)
        self.assertEqual((done.tag, done.bytes, done.operation),
                         ("mine", 5, urma.Operation.WRITE))
        arrival = self.inbox.receive(LIMIT)
        self.assertEqual((arrival.data, arrival.immediate), (b"", 42))
        self.assertEqual(bytes(self.segment.memory[4096:4101]), b"hello")
        into = bytearray(7)
        self.jetty.read([memoryview(into)[:2], memoryview(into)[2:]], self.there,
                        4096).wait(LIMIT)
        self.assertEqual(into, b"hello\0\0")
        self.jetty.send([b"two ", b"parts"], self.target, solicited=True).wait(LIMIT)
        arrival = self.inbox.receive(LIMIT)
        self.assertEqual((arrival.data, arrival.immediate, arrival.solicited),
                         (b"two parts", None, True))
        self.jetty.send(b"", self.target, immediate=0).wait(LIMIT)
        self.assertEqual(self.inbox.receive(LIMIT).immediate, 0)

    def test_notification(self):
        self.jetty.write(b"data", self.there, 0, notify=(self.there, 64, 7)).wait(LIMIT)
        self.assertEqual(self.segment.memory[64:72].cast("Q")[0], 7)
        self.fails(ValueError, lambda: self.jetty.write(
            b"", self.there, to=self.target, immediate=1, notify=(self.there, 0, 1)))

    def test_atomics(self):
        words = self.segment.memory.cast("Q")
        jetty, there = self.jetty, self.there

        def fetched(work):
            return work.wait(LIMIT).fetched

        self.assertEqual(fetched(jetty.fetch_add(there, 0, 12)), 0)
        self.assertEqual(fetched(jetty.fetch_sub(there, 0, 2)), 12)
        self.assertEqual(fetched(jetty.fetch_and(there, 0, 14)), 10)
        self.assertEqual(fetched(jetty.fetch_or(there, 0, 1)), 10)
        self.assertEqual(fetched(jetty.fetch_xor(there, 0, 3)), 11)
        self.assertEqual(fetched(jetty.swap(there, 0, -1)), 8)
        self.assertEqual(words[0], 2**64 - 1)
        self.assertEqual(fetched(jetty.compare_swap(there, 0, 2**64 - 1, 5)), 2**64 - 1)
        self.assertEqual(fetched(jetty.compare_swap(there, 0, 6, 7)), 5)
        self.assertEqual(fetched(jetty.atomic_load(there, 0, urma.Update.UNSIGNED_MAX, 9)), 5)
        jetty.atomic_store(there, 0, urma.Update.CLEAR, 1).wait(LIMIT)
        self.assertEqual(words[0], 8)
        self.assertEqual(fetched(jetty.fetch_add(there, 3, -1, size=1)), 0)
        self.assertEqual(self.segment.memory[3], 255)

    def test_more_works_than_berths(self):
        works = [self.jetty.write(bytes([i]) * 100, self.there, i * 100) for i in range(200)]
        self.jetty.drain(LIMIT)
        self.assertTrue(all(work.done for work in works))
        self.assertEqual(self.jetty.outstanding, 0)
        for i in range(200):
            self.assertEqual(bytes(self.segment.memory[i * 100:i * 100 + 100]), bytes([i]) * 100)

    def test_failures(self):
        caught = self.fails(urma.Error, self.jetty.write(b"x", self.there, 1 << 20).wait,
                            "write of 1 bytes", "remote_access")
        self.assertEqual(caught.status, urma.Status.REMOTE_ACCESS)
        # The failure of a work that the program no longer has is raised by drain, once.
        self.jetty.write(b"x", self.there, 1 << 20)
        self.fails(urma.Error, lambda: self.jetty.drain(LIMIT), "remote_access")
        self.jetty.drain(LIMIT)
        self.segment.unregister()
        self.fails(urma.Error, self.jetty.write(b"x", self.there).wait, "remote_access")
        self.fails(urma.NotFound, lambda: self.writer.import_("urma://localhost/none-x", 0))
        self.fails(urma.InvalidArgument, lambda: urma.open("nonsense:"))
        self.fails(urma.TimedOut, lambda: self.inbox.receive(0.01))
        self.fails(urma.Error, lambda: self.jetty.receive(0), "receives=64")
        self.assertIsInstance(urma.TimedOut(urma.Status.TIMED_OUT, ""), TimeoutError)

    def test_message_longer_than_the_buffers(self):
        small = self.owner.jetty(receives=1, message_bytes=4)
        target = self.writer.import_(small.descriptor).jetty
        work = self.jetty.send(b"too long", target)
        caught = self.fails(urma.Error, lambda: small.receive(LIMIT))
        self.assertEqual(caught.status, urma.Status.RECEIVE_TOO_SMALL)
        self.fails(urma.Error, lambda: work.wait(LIMIT))

    def test_wrong_types(self):
        jetty, there = self.jetty, self.there
        frozen = b"frozen"
        for kind, call in (
                (TypeError, lambda: jetty.write("text", there)),
                (TypeError, lambda: jetty.write(5, there)),
                (TypeError, lambda: jetty.write(b"x", "segment")),
                (TypeError, lambda: jetty.write(b"x", None)),
                (TypeError, lambda: jetty.write(b"x", there, "0")),
                (ValueError, lambda: jetty.write(b"x", there, -1)),
                (TypeError, lambda: jetty.write(b"x", there, 1.5)),
                (ValueError, lambda: jetty.write(b"x", there, immediate=1)),
                (TypeError, lambda: jetty.write(b"x", there, to=there, immediate=1)),
                (ValueError, lambda: jetty.write(b"x", there, to=self.target, immediate=2**64)),
                (TypeError, lambda: jetty.write(b"x", there, notify=1)),
                (TypeError, lambda: jetty.write(b"x", there, order="strong")),
                (ValueError, lambda: jetty.write([b"x"] * 17, there)),
                (TypeError, lambda: jetty.send(b"x", there)),
                (BufferError, lambda: jetty.read(frozen, there)),
                (TypeError, lambda: jetty.read(None, there)),
                (TypeError, lambda: jetty.fetch_add(there, 0, 1.0)),
                (ValueError, lambda: jetty.fetch_add(there, 0, 256, size=1)),
                (ValueError, lambda: jetty.fetch_add(there, 0, 1, size=0)),
                (TypeError, lambda: jetty.atomic_load(there, 0, 1, 1)),
                (TypeError, lambda: jetty.receive("soon")),
                (ValueError, lambda: jetty.receive(-1)),
                (ValueError, lambda: jetty.receive(float("nan"))),
                (TypeError, lambda: jetty.lane(5)),
                (TypeError, lambda: self.owner.allocate("1")),
                (TypeError, lambda: self.owner.allocate(1, rights=3)),
                (urma.InvalidArgument, lambda: self.owner.allocate(0)),
                (TypeError, lambda: self.owner.register(5)),
                (BufferError, lambda: self.owner.register(frozen)),
                (ValueError, lambda: self.owner.jetty(berths=0)),
                (TypeError, lambda: self.owner.publish("name")),
                (TypeError, lambda: self.owner.publish("name", self.inbox)),
                (TypeError, lambda: self.owner.publish(5, self.segment)),
                (TypeError, lambda: self.owner.publish("name", jetty=self.segment)),
                (TypeError, lambda: self.owner.publish("name", self.segment, eids="::1")),
                (urma.InvalidArgument, lambda: self.owner.publish("a b", self.segment)),
                (TypeError, lambda: self.owner.import_(5)),
                (urma.InvalidArgument, lambda: self.owner.import_("nonsense")),
                (TypeError, lambda: urma.open(5)),
                (TypeError, lambda: urma.open(threads="served")),
                # Names that another device imported mean nothing to this one.
                (ValueError, lambda: self.owner.jetty().write(b"x", there)),
                (ValueError, lambda: self.owner.jetty().send(b"x", self.target)),
                (ValueError, lambda: jetty.write(b"x", self.segment)),
                (ValueError, lambda: jetty.send(b"x", self.inbox)),
                (TypeError, lambda: jetty.send(b"x", None)),
        ):
            self.fails(kind, call)
        self.assertRaises(TypeError, jetty.write)
        self.assertRaises(TypeError, urma.Segment)
        self.assertRaises(TypeError, lambda: copy.copy(self.segment))
        work = jetty.write(b"x", there)
        self.fails(TypeError, lambda: work.add_done_callback(5))

    def test_lane(self):
        lane = self.jetty.lane(self.there)
        lane.write(b"12345678", 8)
        into = bytearray(8)
        lane.read(into, 8)
        self.assertEqual(into, b"12345678")
        self.assertEqual([lane.fetch_add(0, 5), lane.swap(0, 6), lane.compare_swap(0, 6, 7)],
                         [0, 5, 6])
        self.fails(ValueError, lambda: lane.swap(0, 1, size=3))
        self.fails(urma.Error, lambda: lane.write(b"x", 1 << 20), "remote_access")
        caught = []
        thread = threading.Thread(target=lambda: caught.append(
            self.fails(urma.InvalidArgument, lambda: lane.write(b"x"))))
        thread.start()
        thread.join()
        self.assertEqual(len(caught), 1)


class UdpTest(WorksTest):
    DEVICE = "udp:127.0.0.1:0"
    test_lane = None


class MemoryTest(Pair):
    def test_memory_that_is_registered_cannot_be_resized(self):
        for owner, grow in ((bytearray(64), lambda it: it.extend(b"x")),
                            (array.array("b", bytes(64)), lambda it: it.append(1))):
            segment = self.owner.register(owner)
            with self.assertRaises(BufferError):
                grow(owner)
            there = self.writer.import_(segment.descriptor).segment
            self.jetty.write(b"abc", there, 1).wait(LIMIT)
            self.assertEqual(bytes(owner[1:4]), b"abc")
            view = segment.memory
            segment.unregister()
            with self.assertRaises(BufferError):
                grow(owner)  # `view` still refers to the memory
            self.assertEqual(bytes(view[1:4]), b"abc")
            view.release()
            grow(owner)
            self.fails(BufferError, lambda: segment.memory, "unregistered")

    def test_views_outlive_segment_and_device(self):
        device = urma.open()
        segment = device.allocate(4096)
        view = segment.memory
        segment.unregister()
        device.close()
        view[0] = 7
        del segment, device
        gc.collect()
        self.assertEqual(view[0], 7)

    def test_works_keep_their_memory(self):
        class Bytes(bytearray):
            pass

        data = Bytes(b"y" * 1000)
        gone = weakref.ref(data)
        works = [self.jetty.write(data, self.there, i) for i in range(50)]
        del data
        gc.collect()
        self.assertIsNotNone(gone())
        self.jetty.drain(LIMIT)
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(len(works), 50)

    def test_nothing_leaks(self):
        tag, data = object(), bytearray(1000)
        before = sys.getrefcount(tag), sys.getrefcount(data)
        for _ in range(100):
            self.jetty.write(data, self.there, tag=tag).wait(LIMIT)
            try:
                self.jetty.write(data, self.there, 1 << 20, tag=tag).wait(LIMIT)
            except urma.Error:
                pass
            try:
                self.jetty.write(data, self.there, -1, tag=tag)
            except ValueError:
                pass
        self.assertEqual((sys.getrefcount(tag), sys.getrefcount(data)), before)
        device = urma.open()
        refs = [weakref.ref(device), weakref.ref(device.jetty(receives=1)),
                weakref.ref(device.allocate(64))]
        del device
        gc.collect()
        self.assertEqual([ref() for ref in refs], [None] * 3)

    @unittest.skipIf(numpy is None, "numpy is not installed (apt-get install python3-numpy)")
    def test_numpy(self):
        values = numpy.random.default_rng(1).integers(0, 256, 1 << 20, numpy.uint8)
        segment = self.owner.allocate(1 << 20)
        there = self.writer.import_(segment.descriptor).segment
        self.jetty.write(values, there).wait(LIMIT)
        shown = numpy.frombuffer(segment, numpy.uint8)
        self.assertTrue((shown == values).all())
        shown[5] = 77  # without a copy, in both directions
        back = numpy.zeros((1024, 1024), numpy.uint8)
        self.jetty.read(back, there).wait(LIMIT)
        self.assertEqual(back[0, 5], 77)
        self.fails(BufferError, lambda: self.jetty.write(back[:, ::2], there), "contiguous")


class Tensor:
    """Has the memory of an array, and DLPack alone, as tensors of other libraries."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


@unittest.skipIf(numpy is None, "numpy is not installed (apt-get install python3-numpy)")
class TensorsTest(Pair):
    def test_segment_as_a_tensor(self):
        self.segment.memory[:5] = b"hello"
        shown = numpy.from_dlpack(self.segment)
        self.assertEqual((shown.dtype, shown.shape), (numpy.uint8, (1 << 16,)))
        self.jetty.write(b"J", self.there).wait(LIMIT)
        self.assertEqual(shown[:5].tobytes(), b"Jello")
        device, gone = self.segment.__dlpack_device__(), weakref.ref(self.segment)
        self.assertEqual(device, (1, 0))
        self.assertIsNotNone(self.segment.__dlpack__(max_version=(1, 0), dl_device=device))
        self.segment.unregister()
        self.segment = None
        gc.collect()
        self.assertEqual(shown[:5].tobytes(), b"Jello")  # the array holds the segment
        del shown
        gc.collect()
        self.assertIsNone(gone())

    def test_segments_that_are_no_tensors(self):
        frozen = self.owner.register(b"frozen", rights=urma.Rights.READ)
        self.fails(BufferError, frozen.__dlpack__, "read-only")
        for options in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}):
            self.fails(BufferError, lambda: self.segment.__dlpack__(**options))
        owner = bytearray(64)
        segment = self.owner.register(owner)
        shown = numpy.from_dlpack(segment)
        segment.unregister()
        with self.assertRaises(BufferError):
            owner.append(1)  # `shown` still refers to the memory
        del shown
        owner.append(1)
        self.fails(BufferError, segment.__dlpack__, "unregistered")

    def test_tensors_as_memory(self):
        values = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
        self.jetty.write(Tensor(values[1:3]), self.there, 8).wait(LIMIT)
        self.assertEqual(bytes(self.segment.memory[8:56]), values[1:3].tobytes())
        parts = [numpy.zeros(6, numpy.float32) for _ in range(2)]
        self.jetty.read([Tensor(part) for part in parts], self.there, 8).wait(LIMIT)
        self.assertTrue((numpy.stack(parts) == values[1:3]).all())
        segment = self.owner.register(Tensor(values))
        there = self.writer.import_(segment.descriptor).segment
        self.jetty.write(numpy.float32(99).tobytes(), there, 4).wait(LIMIT)
        self.assertEqual(values[0, 1], 99)
        self.jetty.write(Tensor(values[:0]), self.there).wait(LIMIT)
        values = values.copy()
        gone = weakref.ref(values)
        work = self.jetty.write(Tensor(values), self.there)
        del values
        work.wait(LIMIT)
        del work
        gc.collect()
        self.assertIsNone(gone())

    def test_tensors_that_are_refused(self):
        values = numpy.zeros((4, 6), numpy.float32)
        frozen = numpy.zeros(4)
        frozen.flags.writeable = False
        for tensor, word in ((Tensor(values[:, :2]), "contiguous"),
                             (Tensor(values.T), "contiguous"),
                             (Tensor(values, device=2), ".cpu()"),
                             (Tensor(frozen), "readonly"),
                             (Tensor(None), "NoneType"),
                             (Tensor(values, device="gpu"), "gpu")):
            self.fails(BufferError, lambda: self.jetty.write(tensor, self.there), word)
            self.fails(BufferError, lambda: self.owner.register(tensor), word)
        nothing = Tensor(values)
        nothing.__class__ = type("Other", (Tensor,), {"__dlpack__": lambda self: 5})
        self.fails(BufferError, lambda: self.jetty.write(nothing, self.there), "no tensor")
        before = sys.getrefcount(values)
        for _ in range(10):
            self.fails(BufferError, lambda: self.jetty.write(Tensor(values.T), self.there))
        self.assertEqual(sys.getrefcount(values), before)


class PathsTest(unittest.TestCase):
    def test_paths_are_added_and_removed(self):
        # Addresses of this process, also if several copies of this run.
        one, two, three = (f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}.{last}"
                    for last in (1, 2, 3))
        with urma.open(f"paths():udp:{one}+udp:{two}") as device:
            both = device.addresses
            added = device.add_path(f"udp:{three}")
            self.assertTrue(added.startswith(three))
            self.assertEqual(device.addresses, [*both, added])
            device.remove_path(both[1])
            self.assertEqual(device.addresses, [both[0], added])
            device.remove_path(added)
            for wrong in (added, both[0], "nonsense"):
                with self.assertRaises(urma.InvalidArgument) as caught:
                    device.remove_path(wrong)
                self.assertIn("Fix: ", str(caught.exception))
        with urma.open("cxl:") as device, self.assertRaises(urma.Error) as caught:
            device.add_path(f"udp:{two}")
        self.assertEqual(caught.exception.status, urma.Status.UNSUPPORTED)


class EndsTest(Pair):
    def test_closed(self):
        work = self.jetty.write(b"x", self.there)
        self.writer.close()
        self.assertTrue(self.writer.closed)
        for call in (lambda: self.jetty.write(b"x", self.there).wait(LIMIT),
                     lambda: self.writer.allocate(1), self.writer.jetty,
                     lambda: self.writer.import_("urma://localhost/x")):
            self.assertEqual(self.fails(urma.Error, call).status, urma.Status.CLOSED)
        work.completion  # does not crash
        self.inbox.close()
        self.fails(urma.Error, lambda: self.inbox.receive(1), "closed")
        self.fails(urma.Error, lambda: self.inbox.descriptor, "closed")

    def test_close_ends_waits_of_other_threads(self):
        for close in (self.inbox.close, self.owner.close):
            inbox = self.owner.jetty(receives=1) if close == self.owner.close else self.inbox
            caught = []

            def wait():
                try:
                    inbox.receive(LIMIT)
                except urma.Error as error:
                    caught.append(error.status)

            threads = [threading.Thread(target=wait) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.1)
            close()
            for thread in threads:
                thread.join(LIMIT)
            self.assertEqual(caught, [urma.Status.CLOSED] * 3)

    def test_two_threads_wait_for_works_of_one_jetty(self):
        failed = []

        def write(first):
            try:
                for i in range(300):
                    self.jetty.write(bytes([i % 256]) * 100, self.there, first + i).wait(LIMIT)
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(at,)) for at in (0, 8192, 16384)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_fork(self):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for call in (lambda: self.jetty.write(b"x", self.there).wait(1),
                             lambda: self.inbox.receive(1), lambda: self.owner.allocate(1),
                             lambda: self.segment.descriptor):
                    try:
                        call()
                        os._exit(2)
                    except urma.Error as error:
                        assert error.status == urma.Status.FORKED, error
                with urma.open() as own:
                    own.allocate(64)
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.jetty.write(b"after", self.there).wait(LIMIT)
        self.assertEqual(bytes(self.segment.memory[:5]), b"after")

    def test_signal_ends_a_wait(self):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.inbox.receive(LIMIT)

    def test_killed_peer(self):
        published = name()
        script = ("import sys, urma\nd = urma.open(sys.argv[1])\ns = d.allocate(4096)\n"
                  "j = d.jetty(receives=4)\nd.publish(sys.argv[2], s, j)\nprint(flush=True)\n"
                  "print(j.receive(10).data.decode(), flush=True)\nj.receive()\n")
        for device in ("cxl:", "udp:127.0.0.1:0"):
            with urma.open(device, operation_timeout=0.5) as own, subprocess.Popen(
                    [sys.executable, "-c", script, device, published], stdout=subprocess.PIPE,
                    text=True) as peer:
                self.addCleanup(peer.kill)
                peer.stdout.readline()
                found = own.import_("urma://localhost/" + published, LIMIT)
                jetty = own.jetty()
                jetty.send(b"alive", found.jetty).wait(LIMIT)
                self.assertEqual(peer.stdout.readline(), "alive\n")
                peer.kill()
                peer.wait()
                self.fails(urma.Error, lambda: jetty.send(b"dead", found.jetty).wait(5))


class AsyncTest(Pair):
    def test_works_arrivals_and_events(self):
        async def main():
            for i in range(100):
                done = await self.jetty.write(b"x" * 500, self.there, to=self.target, immediate=i)
                self.assertTrue(done.ok)
                self.assertEqual((await anext(self.inbox.arrivals())).immediate, i)
            await asyncio.gather(*(self.jetty.write(b"x", self.there, i) for i in range(100)))
            with self.assertRaises(urma.Error):
                await self.jetty.write(b"x", self.there, 1 << 20)
            events = self.owner.events()
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0.01)
            self.writer.close()
            self.assertEqual((await asyncio.wait_for(waiting, LIMIT)).kind,
                             urma.EventKind.PEER_LEFT)

        asyncio.run(main())

    def test_time_outs_lose_no_arrival(self):
        async def main():
            arrivals = self.inbox.arrivals()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(arrivals), 0.05)
            cancelled = asyncio.ensure_future(anext(arrivals))
            taker = asyncio.ensure_future(anext(arrivals))
            await asyncio.sleep(0)
            cancelled.cancel()
            await self.jetty.send(b"kept", self.target)
            self.assertEqual((await asyncio.wait_for(taker, LIMIT)).data, b"kept")

        asyncio.run(main())
        asyncio.run(main())  # the same Jetties, in another loop

    def test_cancelled_works(self):
        # The receiver has no slot left, so these works do not end.
        full = self.owner.jetty(receives=1)
        target = self.writer.import_(full.descriptor).jetty

        async def main():
            works = [self.jetty.send(b"x" * 200, target) for _ in range(8)]
            await works[0]
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(works[7], 0.1)  # waits for a berth: never sent
            self.assertEqual(works[7].completion.status, urma.Status.FLUSHED)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(works[1], 0.1)  # was sent: continues
            self.assertFalse(works[1].done)
            self.jetty.cancel()
            self.assertTrue(all(work.done for work in works))
            await self.jetty.write(b"again", self.there)

        asyncio.run(main())

    def test_arrivals_end_when_the_jetty_closes(self):
        async def main():
            async def consume():
                return [arrival.data async for arrival in self.inbox.arrivals()]

            task = asyncio.ensure_future(consume())
            await self.jetty.send(b"one", self.target)
            await asyncio.sleep(0.1)
            self.inbox.close()
            self.assertEqual(await asyncio.wait_for(task, LIMIT), [b"one"])

        asyncio.run(main())

    def test_two_loops_cannot_await_one_jetty(self):
        async def wait():
            await asyncio.wait_for(self.inbox.arrivals().__anext__(), LIMIT)

        async def main():
            waits = asyncio.ensure_future(wait())
            await asyncio.sleep(0.1)  # `waits` begins
            in_thread = threading.Thread(
                target=self.fails, args=(RuntimeError, lambda: asyncio.run(wait()), "each loop"))
            in_thread.start()
            await asyncio.get_running_loop().run_in_executor(None, in_thread.join)
            self.jetty.send(b"over", self.target)
            await waits

        asyncio.run(main())
        self.assertTrue(any("use a Jetty for each loop" in text for text in refusals))

    def test_a_thread_waits_beside_a_loop(self):
        async def main():
            async def write():
                for i in range(200):
                    await self.jetty.write(b"a" * 300, self.there, i)

            thread = threading.Thread(target=lambda: [
                self.jetty.write(b"b" * 300, self.there, i).wait(LIMIT) for i in range(200)])
            thread.start()
            await asyncio.wait_for(write(), LIMIT)
            await asyncio.to_thread(thread.join)

        asyncio.run(main())


class PackageTest(unittest.TestCase):
    def test_enumerations_are_those_of_the_library(self):
        self.assertEqual({str(each): each.value for each in urma.Status}, urma._urma.statuses())
        self.assertEqual([str(each) for each in urma.EventKind], urma._urma.event_kinds())
        self.assertIn("segment", urma.Status.REMOTE_ACCESS.cure)

    def test_stubs_and_module_agree(self):
        stubs = ast.parse((pathlib.Path(urma.__file__).parent / "__init__.pyi").read_text())
        shown = set()
        for node in stubs.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name[0] != "_":
                shown.add(node.name)
            if not isinstance(node, ast.ClassDef) or node.name[0] == "_":
                continue
            kind = getattr(urma, node.name)
            stubbed = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            stubbed |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
            if issubclass(kind, Exception):
                continue
            real = {each for each in vars(kind) if each[0] != "_"}
            if issubclass(kind, int):
                real = set(kind.__members__) | {
                    each for each in vars(kind) if isinstance(vars(kind)[each], property)}
            self.assertEqual({each for each in stubbed if each[0] != "_"}, real, node.name)
        self.assertEqual(shown, set(urma.__all__) - {"__version__"})

    def test_program_ends_with_open_devices(self):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c",
             "import urma; d = urma.open(); s = d.allocate(64); j = d.jetty(receives=1)"],
            capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


def cures_without_a_test():
    """Returns the cures of the sources that no refused call has named."""
    sys.path.insert(0, str(ROOT / "tests/advice"))
    import cures
    missing = []
    for path in sorted([*ROOT.glob("python/*.cc"), *ROOT.glob("python/urma/*.py")]):
        for cure in cures.cures_in(f"python/{path.name}", path.read_text()):
            parts = re.split(r"\{\}", cure)
            pattern = re.compile("Fix: " + ".*".join(map(re.escape, parts)))
            if not any(pattern.search(text) for text in refusals):
                missing.append(f"{path.name}: {cure}")
    return missing


if __name__ == "__main__":
    tests = unittest.main(exit=False)
    if len(sys.argv) == 1 and numpy is not None and cures_without_a_test():
        sys.exit("No test is refused with: " + "; ".join(cures_without_a_test()))
    sys.exit(not tests.result.wasSuccessful())
