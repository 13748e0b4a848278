#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the compiler warn when a result is dropped? discarded_test.py ROOT COMPILER

A program that ignores such a result has a bug that nothing else shows: a work that was never
posted, a completion that is lost, a queue that was not armed, an error."""

import re
import subprocess
import sys

ROOT, COMPILER = sys.argv[1:3]
CALLS = """\
jetty.post(work);
jetty.post(std::span(&work, 1));
jetty.post({work, work});
urma::write(bytes, segment);
urma::read(bytes, segment);
urma::send(bytes, target);
urma::fetch_add(segment, 0, 1);
jetty.receive(bytes);
jetty.receive(buffers);
jetty.poll(completions);
jetty.wait(limit);
jfr.receive(bytes);
jfr.receive(buffers);
jfr.poll(completions);
jfr.wait(limit);
jfc.poll(completions);
jfc.wait(limit);
jfce.take(tags);
jfce.wait(limit);
jetty.arm();
jfr.arm();
jfc.arm();
urma::poll_and_arm(jetty, ignore);
jetty.fd();
jetty.flush();
jetty.suspend();
jetty.reset();
jetty.lane(segment);
jfce.attach(jetty, 1);
urma::open();
device.allocate(4096);
device.register_memory(bytes);
device.jetty();
device.jfr();
device.jfc(64);
device.jfce();
device.publish("name", owned);
device.unpublish("name");
device.import("urma://localhost/name");
device.start_import("urma://localhost/name");
import.poll();
import.fd();
device.events(events);
device.events_fd();
device.add_path("udp:");
device.stats();
owned.rotate();
owned.retire();
owned.unregister();
owned.revoke();
lane.write(bytes, 0);
lane.read(bytes, 0);
urma::error(urma::Status::closed, "what");
urma::parse_descriptor("line");
""".splitlines()
HEAD = """\
#include <urma/urma.hpp>
void drop(urma::Jetty& jetty, urma::Jfr& jfr, urma::Jfc& jfc, urma::Jfce& jfce,
          const urma::Work& work, std::span<std::byte> bytes, std::span<const urma::Buffer> buffers,
          std::span<urma::Completion> completions, std::span<uint64_t> tags, urma::Duration limit,
          const urma::RemoteSegment& segment, const urma::RemoteJetty& target,
          urma::Device& device, urma::Segment& owned, urma::Import& import, urma::Lane& lane,
          std::span<urma::Event> events, void (*ignore)(const urma::Completion&)) {
"""


def main():
    first = HEAD.count("\n") + 1
    done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", "-xc++", "-"],
                          input=HEAD + "\n".join(CALLS) + "\n}\n", capture_output=True, text=True,
                          timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    warned = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: warning: ", done.stderr,
                                               re.MULTILINE)}
    silent = [call for line, call in enumerate(CALLS, first) if line not in warned]
    assert not silent, f"no warning for {silent}"


main()
