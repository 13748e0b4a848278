// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_ping/options.h"

#include "apps/capi/eid.h"
#include "apps/common/command_line.h"

namespace urma::apps::ping {

Options parse_options(int count, char** arguments) {
  constexpr double day = 86'400;
  Options options;
  bool serves = false;
  CommandLine line("urma_ping", help);
  line.value("eid", options.eid, capi::EidText{});
  line.value("-c,--count", options.count, WholeNumber{.least = 1, .most = UINT32_MAX});
  line.value("-I,--source", options.source, capi::EidText{});
  line.value("-i,--interval", options.interval_seconds, Seconds{0, day});
  line.value("-s,--size", options.bytes, Bytes{.most = 4096});
  line.value("-w,--deadline", options.deadline_seconds, Seconds{0, 365 * day});
  line.value("-W,--timeout", options.timeout_seconds, Seconds{0, day});
  line.flag("-q,--quiet", options.quiet);
  line.flag("-v,--verbose", options.verbose);
  line.flag("--serve", serves);
  const CommandLine::Asked asked = line.parse(count, arguments);
  options.mode = asked == CommandLine::Asked::help      ? Options::Mode::help
                 : asked == CommandLine::Asked::version ? Options::Mode::version
                 : serves                               ? Options::Mode::serve
                                                        : Options::Mode::ping;
  line.exclude({"--quiet", "--verbose"});
  for (const char* const name :
       {"--count", "--source", "--interval", "--size", "--deadline", "--timeout"}) {
    line.exclude({"--serve", name});
  }
  if (options.mode == Options::Mode::ping && !options.eid) {
    usage("missing destination. Fix: give its EID, as in urma_ping 10.0.0.5, or --serve");
  }
  if (options.deadline_seconds == 0) options.deadline_seconds.reset();  // as UMDK's urma_ping
  return options;
}

std::string help() {
  return R"(urma_ping - does a process answer at an EID, and after how long?

  urma_ping 10.0.0.5                 a message each second, until Ctrl-C
  urma_ping -c 5 -s 1024 10.0.0.5    five messages of 1024 bytes
  urma_ping -I 10.0.0.9 10.0.0.5     from the device that has the EID 10.0.0.9
  urma_ping --serve                  answer at all EIDs of this host, until Ctrl-C
  urma_ping --serve 10.0.0.5         answer at this EID only
  URMA_PING=1 ./service              a program of the C API of UMDK that answers, too

  -c, --count N            end after N messages
  -I, --source EID         the device to send from (the one towards the destination)
  -i, --interval SECONDS   the time between an answer and the next message  (1)
  -s, --size BYTES         of each message, 1 to 4096                       (4)
  -w, --deadline SECONDS   end after this time; 0: never                    (0)
  -W, --timeout SECONDS    how long to wait for an answer; 0: without limit (1)
  -q, --quiet              only the first line and the statistics
  -v, --verbose            also the devices, and why messages are not answered
  --serve                  answer messages instead of sending any
  --version

Messages go to Jetty 5 of the process that answers at the EID. urma_admin show lists EIDs.

Exit codes: 0 the process was found, even if not all answers came   1 error, or no process was found
2 usage   4 an answer had other bytes   130 Ctrl-C with --serve
)";
}

}  // namespace urma::apps::ping
