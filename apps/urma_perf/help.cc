#include "apps/urma_perf/help.h"

#include <fmt/format.h>

#include "apps/urma_perf/tests.h"

namespace urma::perf {
namespace {

constexpr std::string_view first_screen =
    R"(urma_perf - how fast do works between two processes go, and do their bytes arrive?

  urma_perf --self                                 both sides here: shared memory, networks; 30 s
  urma_perf --self write_imm_lat --limit           one test, and what is possible beside it
  urma_perf --self write_bw --size 64,4K,1M        several sizes
  urma_perf --self read_bw --sweep --limit         8 bytes to 4M, 20 rows
  urma_perf reg --self                             what registering and revoking memory costs
  urma_perf server                                 between two programs, or machines: here
  urma_perf read_lat 10.0.0.5 --json > read.json   and there; without a host: on this one

Tests: {}

  --self             run both sides here, as two processes on two processors
  --size LIST        bytes of a message: 64 or 4K,64K,1M     (64 for _lat, 64K for _bw)
  --sweep            sizes 8, 16, 32 ... 4M (sends: 64K), each for a second
  --seconds S        how long each size is measured          (2)
  --count N          or how many messages of each size
  --depth D          works outstanding for each Jetty, _bw   (what 4 MiB hold, 4 to 128)
  --jetties N        on each side                            (one for each thread)
  --threads N        of the client                           (1)
  --auto, --served   what runs the device: threads that poll, while they do; always its own thread
  --device STRING    cxl: (shared memory; default on one host), udp:10.0.0.5, "fault(loss=5%):udp:"
  --retransmit MODE  gbn-fast, gbn-timeout, sel-fast, sel-timeout, sel-rack: docs/performance.md
  --limit            measure bare sockets or memory too, in turns: how many times slower are works?
  --private          memory of each process's own: nothing is mapped, all goes by packets
  --no-verify        do not look at the bytes
  --json             one JSON object on stdout instead of the table

More: urma_perf --help-all
)";

constexpr std::string_view rest = R"(
Other options
  --budget             what idle Jetties, peers and channels cost, how fast Jetties are made, and
                       what a post to any of a million of them costs (or of --jetties N); exit code
                       3 when a bound is missed
  --inline             the threads that measure run the device, spinning (default)
  --auto               as --inline, but a thread of the device's own stands by, as it does for an
                       application that says nothing (Threads::automatic)
  --served             a thread of the device's own, asleep when idle; those that measure sleep too
  --device STRING      with --self for both sides
  --retransmit MODE    how this side sends lost packets again (sel-rack); with --self both sides. Of
                       a server: what it answers with
  --peer-device STRING with --self: the server's device, as where pcap() is to capture both sides
  --rounds N           each size is measured in so many parts, between which the limit is (5)
  --signal-every N     only one of N works has a completion (1): of _bw, where --depth is a
                       multiple of it, and of send_lat, write_imm_lat, wake_lat, up to 32
  --spread BYTES       reads from random places of so much memory: 64M has none in a cache; a
                       limit is spread likewise where it is a copy
  --order O            of works: no, ro, so, or chain (relaxed ones of a Jetty whose works are a
                       chain): docs/reliability.md
  --mode M             which end keeps it: roi initiator, rot target, auto the target if it can;
                       uno neither: sends of one packet that may be lost (msg/s: what arrived)
  --atomic A           of atomic_lat and atomic_bw: fetch-add (default) or cas, compare-swap
  --fence-every N      _bw: one work of N waits for all before it
  --churn N            reg: N times a second, while another device writes there as fast as it can
  --seed N             of the bytes (1)
  --json-file FILE     the JSON object into a file, which is there whole or not at all
  --cpu N              bind this process to processor N
  --once               server: end after the first client
  HOST                 localhost (default: this user's server here, in the window; with --device
                       udp: of several the one at 127.0.0.1), a name, ADDRESS or ADDRESS:PORT.
                       Without --device a server is in the window and at all addresses of its host
  -v, --verbose        what was chosen, and each round
  --version

Columns
  p50 ... max us   _lat of reads and writes: from post to completion. send_lat, write_imm_lat: half
                   of a round trip; wake_lat too, without the 1 ms for which each side rests
                   before it sends, so that the other one sleeps. _bw: from post to completion with
                   --depth works outstanding
  msg/s, GB/s      completed works of all threads per second (round trips of send_lat and
                   write_imm_lat); 10^9 bytes; median of the rounds
  #wrong           messages with wrong bytes, lost or notified twice. If not 0, the exit code is 4
  retx, RNR, dup   packets sent again, "receiver not ready" answers, packets that came twice; both
                   sides together. --json has all counters
  limit, x limit   what can be had without this library in the same two processes, and the median
                   over the rounds of how many times slower works are (least..most). What arrives is
                   read, unless --no-verify. In brackets: measured on the clean network
  limit by         how. Devices on udp: bare sockets
    udp ping-pong    one datagram there and back (GSO trains above 65000 bytes), both spin
    udp wake         the same, asleep in poll
    udp sendmmsg     64 datagrams per call, below 1 KiB
    udp trains       GSO and GRO, datagrams up to 8 KiB, from 1 KiB on
                   Devices on cxl: memory that both processes share. Pollers spin without PAUSE
    inline ring      sends up to 48 bytes: they and their number in a line, 1024 lines in turn
    message, copied  larger sends: into one of four buffers, a counter; copied out by the receiver
    write, slot      write_imm below 1 KiB: into one of 1024 places, a line tells; read in place
    message, read    from 1 KiB on: into one of four buffers, a counter; read in place
    data, slot       write_lat, read_lat: as the two above one way, a line the other (also:
    message, slot    from 1 KiB on)
    futex wake       as message, copied, asleep in futex
    stamped ring     _bw below 1 KiB: entries with numbers, 1024 in turn, credit every 64
    two-copy pipe    _bw from 1 KiB on: copied into one of 4 slots of up to 64 KiB, and out
    instruction      atomics on mapped memory: the processor's, by the client alone, on lines that
                     the server maps, too
    copy             writes and reads of mapped memory, unless --private: by the client alone
  wait             how much of the time a thread that wanted to run had no processor, in the process
                   that had less. Rounds above 10 % are discarded and repeated, as often again as
                   --rounds; a row above 10 % means nothing

reg: for each --size, in us, median and 99 %: memory of its own is registered (or of the window's
  taken), then rotated, retired and revoked, or unregistered. --private: only the former. --seconds
  for each row (1); --json; --device. Of the window's memory, register clears it

What is checked when
  write_lat, write_bw           the last write to each place, where it landed, after each round
  write_imm_lat, send_lat,
  wake_lat                      every message, by both sides, within the measured time
  send_bw                       every message, by the server, within the measured time
  write_imm_bw                  as send_bw if the server is --inline; and as write_bw
  read_lat, read_bw             every read, by the client; its time counts in msg/s, not in the us
  atomic_lat, atomic_bw         what each signalled work fetched, by the client; each word, where it
                                lies, after each round. cas: each swaps the value for another one
  And the server must have been notified of as many messages as were sent, each once.
  The bytes are f(seed, offset, iteration): see apps/urma_perf/pattern.h.

Tests
{}
On a terminal a line shows the progress of a case once a second; it is wiped before the result.

Exit codes
  0 ok   1 error   2 usage   4 wrong bytes   5 server lost or not reached   6 version mismatch
  7 ok, but a capture (pcap) of either side lacks packets
  130 Ctrl-C, after the summary so far (a second one ends at once)
)";

}  // namespace

std::string help() {
  std::string names = test_names();
  std::erase(names, ',');
  const size_t half = names.rfind(' ', names.size() / 2 + 20);
  names.replace(half, 1, "\n       ");
  return fmt::format(first_screen, names);
}

std::string help_all() {
  std::string tests;
  for (const Test& test : all_tests()) {
    tests += fmt::format("  {:<14} {}\n", test.name, test.summary);
  }
  return help() + fmt::format(rest, tests);
}

}  // namespace urma::perf
