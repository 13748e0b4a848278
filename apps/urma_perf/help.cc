// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/help.h"

#include <fmt/format.h>

#include <sstream>

#include "apps/urma_perf/tests.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {
namespace {

constexpr std::string_view first_screen =
    R"(urma_perf - measures works and lanes between two processes, checking each byte

  urma_perf --self [--short]                   both sides here: 20 s, or 8
  urma_perf --self write_imm_lat --limit       one test beside the path's limit
  urma_perf --self write_bw --size 64,4K,1M    several sizes
  urma_perf --self read_bw --sweep --limit     8 bytes to 4M, 20 rows
  urma_perf --selftest                         is this machine all right? 5 s
  urma_perf server                             between programs or machines: one
  urma_perf 10.0.0.5                           and the other side; 13 s
  urma_perf read_lat 10.0.0.5 --json > a.json  one test; without host: this host

Tests: {}

  --self           run both sides on this host, as two processes
  --size LIST      bytes of a message: 64 or 4K,64K,1M (_lat: 64, _bw: 64K)
  --sweep          sizes 8, 16, 32 ... 4M (sends: 64K), each for a second
  --seconds S      how long each size is measured (2); or --count N messages
  --depth D        _bw: works outstanding for each Jetty (4 MiB, 4 to 128)
  --jetties LIST   Jetties on each side: 1 or 1,8 (one for each thread)
  --threads N      threads of the client (1)
  --auto, --served the device's own thread runs it too, or (--served) alone
  --device STRING  cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --limit          also measure bare sockets or memory, in turns: the ratio
  --private        nothing is mapped: all works are sent as packets
  --no-verify      do not check the bytes
  --json, --csv    JSON, or lines of values, on stdout instead of the table

More: urma_perf --help-all
)";

constexpr std::string_view other_options = R"(
Other options
  --budget             the cost of idle Jetties, peers and channels, of creating
                       Jetties, and of a post to any of a million of them (or of
                       --jetties N); exit code 3 if a bound does not hold
  --inline             the threads that measure run the device, spinning
                       (default)
  --auto               like --inline, but the device has its own thread as well,
                       as it has by default in an application
                       (Threads::automatic); the default for a device string
                       with engines=
  --served             the device's own thread, asleep when idle; measuring
                       threads sleep, too
  --loopback           another name of --self
  -s, --server         another name of server
  --device STRING      with --self: the device of both sides. Without it: what
                       URMA_DEVICE or the configuration file names, if they do:
                       urma_info --config
  --retransmit MODE    how this side sends lost packets again: gbn-fast,
                       gbn-timeout, sel-fast, sel-timeout or sel-rack (default):
                       docs/performance.md. With --self: both sides; for a
                       server: how it sends its answers again
  --cc NAME            this side's congestion control (aimd); with --self: both
                       sides'. Those that read ECN marks need a device that
                       carries them, as udp:?ecn=yes
  --threads N          threads of the client (1); with engines=N in --device, an
                       engine each
  --depth D            _bw: works outstanding for each Jetty; without it as many
                       as 4 MiB hold, 4 to 128
  --peer-device STRING with --self: the server's device, for example to capture
                       both sides
  --profile            also measure how long each stage of a work takes, and
                       print a table for each side: see below. A server that is
                       to have a table is started with it, too
  --rate N             post N works per second (5000, 20K, 1.5M; of all threads
                       together) when each is due, and not when an earlier one
                       has completed: latencies count from then, so that
                       waiting counts. For _bw tests, write_lat, read_lat,
                       atomic_lat
  --bidirectional      write_bw, read_bw: the client writes and reads at the
                       same time, in a process for each; the row is the sum, the
                       lines below it each direction. Another test needs --self:
                       two processes measure each other (--served unless chosen)
  --pattern P          with --self: several processes at the same time.
                       one_to_one: each of the first half sends to one of the
                       second; incast: all to the first; all_to_all. Each flow
                       has a process that sends, each target one that receives
                       (--served unless chosen). The row is the sum of the
                       rates, with the latencies of all
  --processes LIST     of --pattern: 2 to 64, as 4 or 2,4,8 (4). Several, also
                       with --size LIST or --sweep (then 4 bytes to 8M), end
                       with a table of p50 by size and processes; --csv and
                       --plot have the same
  --rounds N           each size is measured in N parts, with the limit between
                       them (5)
  --signal-every N     only one of N works has a completion (1): for _bw, where
                       --depth must be a multiple of N, and for send_lat,
                       write_imm_lat, wake_lat, up to 32
  --spread BYTES       read from random places in this much memory; 64M does not
                       fit into a cache. A limit that is a copy is spread, too
  --memory cuda:N      the bytes of both sides lie in memory of this GPU
                       (docs/gpu.md). Not with --limit, atomics and lanes
  --order O            the order of works: no, ro, so, or chain (relaxed works
                       of a Jetty that is a chain): docs/reliability.md
  --mode M             which side keeps the order: roi the initiator, rot the
                       target, auto the target if it can; uno neither: sends of
                       one packet that may be lost (msg/s counts those that
                       arrived)
  --atomic A           for atomic_lat, atomic_bw, lane_atomic_lat: fetch-add
                       (default) or cas, compare-swap
  --fence-every N      _bw: one work of N waits for all works before it
  --summed             with --limit, _bw on udp from 1 KiB on: both ends of the
                       limit's trains also compute a CRC of each datagram, as an
                       ICRC needs ("udp trains, summed")
  --block BYTES        kv: the size of a block (1152K)
  --blocks N           kv: how many blocks (298)
  --plan FILE          kv: the blocks from a file: below
  --entries LIST       kv: also rows in which scatter lists of so many blocks
                       move them: 1,16,128. --sweep: 1, 2, 4 ... 128
  --churn N            reg: register, rotate and revoke memory N times a second,
                       while another device writes to it
  --seed N             the seed of the bytes (1)
  --count N            the number of messages of each size, instead of a time
  --json-file FILE     write the JSON object to a file, completely or not at all
  --hist FILE          write all latencies of the only result as an
                       HdrHistogram, three digits, in the percentile format
                       (.hgrm) that its plotters read; in microseconds
  --plot FILE          draw the results as an SVG: over the size, or, with one
                       size, the percentile
  --json-stream        print a JSON object for each result as soon as it is
                       measured ("type" is "result"), and before it one for each
                       second ("interval"), at once
  --csv                print a line of values for each result, below a line of
                       names
  --fail-if CONDITION  exit with 3 if a result meets this: a name, one of < <= >
                       >=, a number, its unit: 'p99>50us', 'bw<90Gbps',
                       'bw<10GB/s', 'rate<1.5M', 'wrong>0'. In quotes: a shell
                       takes < and >. It may be given several times. The names:
                       lat (the median), p50, p90, p99, p99.9, p99.99, max,
                       mean, stddev: ns, us, ms or s (us); bw: bps or B/s with
                       K, M, G, T, or Ki to Ti before it; rate (messages per
                       second), wrong, retx, rnr, dup: K, M, G; lost, wait: in
                       %; x_limit with --limit; and each number that --json
                       prints for a result, in the unit of its name
  --cpu N              bind this process to processor N
  --once               server: end after the first client
  HOST                 localhost (default: this user's server on this host, in
                       the window; with --device udp:, of several servers the
                       one at 127.0.0.1), a name, ADDRESS or ADDRESS:PORT.
                       Without --device a server is in the window and at all
                       addresses of its host. Either side may start first: a
                       client waits 2 s for its server
  --short              with --self: only the main measurement's ten rows that
                       say most
  --wide               all columns; otherwise as many as fit into the terminal,
                       or 80 characters
  -v, --verbose        print what was chosen and why, what was not, and each
                       round
  -q, --quiet          print no progress: no lines and no intervals
  --version

Beside the tests
  urma_perf reg --self the time to register and to revoke memory: below
  --selftest           a check of this machine, in 5 s: each kind of work,
                       between two processes over the window, UDP and UDP with
                       losses (or --device), with each byte checked. Prints PASS
                       or FAIL; exit code 3 if a check failed. --json
  --ping [HOST]        asks the server at HOST a question once a second, until
                       Ctrl-C or --count N questions, and prints how long each
                       answer took: both programs sleep before. Exit code 1 if
                       nothing was answered. --json
  urma_perf HOST       the main measurement between two machines (urma_perf main
                       HOST, if the name has neither a dot nor a colon): latency
                       and bandwidth of writes, reads and sends
  urma_perf compare A.json B.json
                       how results in two files of --json-file differ, for each
                       test that both have with the same device, size and
                       options: p50 of _lat, msg/s of _bw, and their ratio.
                       "same" means that the rounds of the two overlap

Columns
  p50 ... max us   _lat of reads and writes: from post to completion. send_lat,
                   write_imm_lat: half of a round trip; wake_lat too, without
                   the 1 ms for which each side sleeps before it sends, so that
                   the other one sleeps. _bw: from post to completion with
                   --depth works outstanding. lane_*: one call of a lane
                   (Jetty::lane), from its beginning to its status. Reading the
                   clock takes as long as several calls, so as many as 16K hold,
                   64 at most, are timed together, and each counts as their
                   mean: p90 ... max are of such means. A lane needs mapped
                   memory; with --threads each thread has a lane, up to 8.
                   With an s: in seconds
  msg/s            completed works of all threads per second (round trips of
                   send_lat and write_imm_lat); GB/s: 10^9 bytes of them,
                   Gbit/s: 10^9 bits; <.001 is less than 0.001; median of the
                   rounds. lane_*: calls per second of the time in calls, which
                   does not include checking the bytes
  wrong            messages with wrong bytes, lost or notified twice. If not 0,
                   the exit code is 4
  retx, RNR, dup   packets sent again, "receiver not ready" answers, packets
                   that came twice, of both sides. --json has all counters
  limit, x limit   the limit: the same two processes without this library; and
                   the median over the rounds of how many times slower works are
                   (from..to: the least and the most). Receivers read the bytes,
                   unless --no-verify. In brackets: measured on the clean
                   network
  limit by         the loop that measured the limit. Devices on udp: bare
                   sockets
    udp ping-pong    one datagram there and back (GSO trains above 65000 bytes),
                     both spin
    udp wake         the same, asleep in poll
    udp sendmmsg     64 datagrams per call, below 1 KiB
    udp trains       GSO and GRO, datagrams up to 8 KiB, from 1 KiB on
    udp trains, summed  the same, if --summed: both ends also compute the CRC of
                     each datagram, with the library's code for the ICRC
                   Devices on dpdk: bare frames over a second port of the same
                   kind
    dpdk ping-pong   one message there and back, both spin; no ICRC
    dpdk bursts, CRC 32 frames per call; both ends compute a CRC of the data, as
                     for an ICRC
                   Devices on verbs: datagrams of a second queue pair at each
                   end
    verbs ping-pong  one message there and back, both spin; no ICRC of UB
    verbs bursts, CRC  32 datagrams per call; both ends compute a CRC of the
                     data
                   Devices on cxl: memory that both processes share. Pollers
                   spin without PAUSE
    inline ring      sends up to 48 bytes: message and number in a line, 1024
                     lines in turn
    message, copied  larger sends: to one of four buffers, a counter; the
                     receiver copies them out
    write, slot      write_imm below 1 KiB: to one of 1024 slots, a line with
                     it; read in place
    message, read    from 1 KiB on: to one of four buffers, a counter; read in
                     place
    data, slot       write_lat, read_lat: like "write, slot" one way, a line
                     back
    message, slot    the same from 1 KiB on: like "message, read" one way
    futex wake       like "message, copied", asleep in futex
    stamped ring     _bw below 1 KiB: entries with numbers, 1024 in turn, credit
                     every 64
    two-copy pipe    _bw from 1 KiB on: copied into one of 4 slots of up to 64
                     KiB, and out
    instruction      atomics on mapped memory: processor instructions of the
                     client alone, on lines that the server maps, too
    copy             writes and reads of mapped memory, unless --private: by the
                     client alone. lane_*: timed in groups, as the calls are
  --rate           two lines below a row: how much of the rate was sent; and
                   whether it was not reached (under 98 %, or messages that were
                   due were not sent within twice the time of a round). Then the
                   latencies are those of a queue that grows. --fail-if
                   'rate_percent<98' makes that an error; "unsent" counts what
                   was not sent
  wait             the share of the time in which a thread was ready and had no
                   processor, in the process that waited more. Rounds above 10 %
                   are discarded and repeated, at most --rounds times; a row
                   above 10 % is not meaningful

--profile: for each side, how often each stage ran in the rounds that count, its
  time in total and for each message, and its share. The first part is what the
  measuring threads did, and adds up to their time: calls of the library,
  "build", which is this program making works, and "elsewhere", in which it
  checks bytes and reads clocks. The second part is what the device did inside
  of these calls, in control calls or in its own thread, and adds up to the
  measured time; "no_pass" is when no thread ran it. "over_1ms" is what took
  longer than 1 ms, usually because the thread had no processor (copies of many
  megabytes take as long); "timing" is what measuring the stages took, 0.1 us
  for a work of 8 bytes. Both are left out of the other rows, except that a wait
  may be long
{}

reg: for each --size, in us, median and 99 %: the process's own memory is
  registered (or window memory allocated), then rotated, retired and revoked, or
  unregistered. --private: only own memory. --seconds for each row (1); --json;
  --device. Registering the window's memory clears it

kv: the blocks of a KV cache, moved as one list: a write for each, in one post,
  of which only the last one has a completion. They lie one behind the other at
  the client, in memory of its own, and in the reverse order at the server. A
  transfer of all blocks is a message, and its bytes are size_bytes of --json.
  Transfers are measured in turns with one write of as many bytes. It posts to
  one Jetty, so --size, --depth, --jetties, --threads, --limit and --plot are
  not for it
  blocks           how many, and their size if they are alike
  entries          "-": a work for each block. Otherwise the blocks are moved in
                   lists of so many, in the order of their offsets at the
                   server, to one range without gaps; a list is posted when the
                   one before has completed. A work gathers up to 16 blocks, so
                   that a longer list is several works, posted together
  works            works of one post
  prep us          making the works of all blocks from their offsets
  post us          the calls that post them
  p50 us           the transfer: from the first post to the last completion.
                   GB/s: without prep
  one us, of one   the one write, and how much of its rate the transfer reaches:
                   one us / p50 us. --fail-if 'of_one<0.95', 'prep>10us'
  --plan FILE      a line for each block, TARGET SOURCE BYTES: its offsets at
                   the server and at the client, in bytes (SOURCE: a multiple of
                   8). Or BYTES COUNT: so many blocks of one size, as above,
                   behind those of the lines before. 4096, 64K, 1M, 1G; # begins
                   a comment. Up to 16384 blocks, which may not overlap at the
                   server; up to 8G on a side

What is checked when
  write_lat, write_bw           the last write to each slot, in the memory,
                                after each round
  write_imm_lat, send_lat,
  wake_lat                      every message, by both sides, within the
                                measured time
  send_bw                       every message, by the server, within the
                                measured time
  write_imm_bw                  as write_bw; and as send_bw if the server is
                                --inline and its memory is not mapped, where a
                                later message may overwrite one at any time
  read_lat, read_bw             every read, by the client; this time counts in
                                msg/s, not in us
  atomic_lat, atomic_bw         the value that each signalled work fetched, by
                                the client; each word in the memory, after each
                                round. cas: each changes the value
  lane_write_lat                as write_lat
  lane_read_lat                 every read, by the client, between two timed
                                groups of calls
  lane_atomic_lat               the value that each call fetched, between two
                                timed groups; each word in the memory, after
                                each round
  kv                            each block of the last transfer, in the memory,
                                after each round
  And the server must have been notified of each message that was sent, once.
  The bytes are f(seed, offset, iteration): see apps/urma_perf/pattern.h.

Tests
{}
Once a second a line shows the progress of a case. On a terminal it is erased at
the end; otherwise it is a new line on stderr each time. --quiet, --json and
--csv leave it out.

Exit codes
  0 ok   1 error   2 usage   4 wrong bytes
  3 --budget: a bound does not hold; --fail-if, --selftest: a check failed
  5 server lost or not reached   6 version mismatch
  7 ok, but a capture (pcap) of either side lacks packets
  130 Ctrl-C, after the results so far (a second one ends immediately)
)";

// Returns the words in lines of at most 80 characters, of which each but the first begins with the
// margin. The first one begins in the same column.
std::string wrapped(std::string_view words, const std::string& margin) {
  constexpr size_t width = 80;
  std::istringstream in{std::string(words)};
  std::string out;
  size_t column = margin.size();
  for (std::string word; in >> word;) {
    const bool first = out.empty();
    if (!first && column + 1 + word.size() > width) {
      out += '\n' + margin + word;
      column = margin.size() + word.size();
    } else {
      out += first ? word : ' ' + word;
      column += word.size() + (first ? 0 : 1);
    }
  }
  return out;
}

}  // namespace

std::string help() {
  std::string names;
  for (const Test& test : all_tests()) names += fmt::format("{} ", test.name);
  return fmt::format(first_screen, wrapped(names, "       "));
}

std::string help_all() {
  std::string tests;
  for (const Test& test : all_tests()) {
    tests += fmt::format("  {:<15} {}\n", test.name, wrapped(test.summary, std::string(18, ' ')));
  }
  std::string stages;
  for (const StageInfo& info : all_stages()) {
    stages += fmt::format("{}    {:<14} {}", stages.empty() ? "" : "\n", info.name,
                          wrapped(info.meaning, std::string(19, ' ')));
  }
  return help() + fmt::format(other_options, stages, tests);
}

}  // namespace urma::apps::perf
