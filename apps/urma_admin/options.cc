// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_admin/options.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "apps/common/command_line.h"
#include "apps/common/near_names.h"

namespace urma::apps::admin {
namespace {

using Words = std::span<const std::string>;

constexpr std::array<std::pair<std::string_view, Resource>, 10> resources = {
    {{"jfc", Resource::jfc},
     {"jfs", Resource::jfs},
     {"jfr", Resource::jfr},
     {"jetty", Resource::jetty},
     {"jetty_group", Resource::jetty_group},
     {"rc", Resource::rc},
     {"seg", Resource::seg},
     {"tp", Resource::tp},
     {"tpreuse", Resource::tpreuse},
     {"stats", Resource::stats}}};

// Returns what is wrong with a word, as a sentence that needs a fix.
std::string wrong_word(std::string_view word, const std::vector<std::string>& valid) {
  const std::string near = near_names(word.substr(0, 60), valid);
  return fmt::format("\"{}\" is not a word of urma_admin{}", word.substr(0, 60),
                     near.empty() ? "" : "; perhaps " + near + " is meant");
}

Resource read_resource(std::string_view word) {
  std::vector<std::string> valid;
  for (const auto& [name, resource] : resources) {
    if (name == word) return resource;
    valid.emplace_back(name);
  }
  usage(fmt::format("{}. Fix: give jfc, jfs, jfr, jetty, jetty_group, seg, tp or stats",
                    wrong_word(word, valid)));
}

// The words behind "show dev".
void read_device(Words words, Options& options) {
  if (words.empty()) usage("missing device. Fix: urma_admin show lists the devices");
  options.device = words[0];
  if (words.size() > 1) options.resource = read_resource(words[1]);
  if (words.size() > 2) {
    const WholeNumber number{.most = UINT32_MAX};
    options.id = number.read(words[2]);
    if (!options.id) {
      usage(
          fmt::format("{}: \"{}\" is invalid. Fix: give a whole number, as urma_admin show dev "
                      "{} {} prints it",
                      words[1], words[2], words[0], words[1]));
    }
  }
  if (words.size() > 3)
    usage(fmt::format("\"{}\" is one word too many. Fix: leave it out", words[3]));
}

// The words behind "show topo".
void read_topology(Words words, Options& options) {
  options.topology = true;
  if (words.empty()) return;
  throw Failure(Exit::error, fmt::format("the node \"{}\" is not known, as processes know their "
                                         "own peers only. Fix: leave it out, and call this there",
                                         words[0].substr(0, 60)));
}

void read_words(Words words, Options& options) {
  if (words.empty() || words[0] != "show") {
    usage(fmt::format("{}. Fix: urma_admin show",
                      words.empty() ? "missing command" : wrong_word(words[0], {"show"})));
  }
  if (words.size() == 1) return;
  if (words[1] == "dev") return read_device(words.subspan(2), options);
  if (words[1] == "topo") return read_topology(words.subspan(2), options);
  usage(fmt::format("{}. Fix: urma_admin show dev DEV", wrong_word(words[1], {"dev", "topo"})));
}

}  // namespace

Options parse_options(int count, char** arguments) {
  Options options;
  std::vector<std::string> words;
  std::string device;
  bool brief = false;
  bool all = false;
  CommandLine line("urma_admin", help);
  line.words(words);
  line.offer("words", {"show"});
  line.text("-d,--dev", device);
  line.flag("--brief", brief);
  line.flag("--all", all);
  line.flag("-w,--whole", options.whole);
  line.flag("--json", options.json);
  const CommandLine::Asked asked = line.parse(count, arguments);
  options.mode = asked == CommandLine::Asked::help      ? Options::Mode::help
                 : asked == CommandLine::Asked::version ? Options::Mode::version
                                                        : Options::Mode::show;
  line.exclude({"--brief", "--all"});
  line.exclude({"--brief", "--whole"});
  if (options.mode != Options::Mode::show) return options;
  read_words(words, options);
  if (line.given("--dev")) {
    if (!options.device.empty()) usage("the device is given twice. Fix: leave out --dev");
    options.device = device;
  }
  return options;
}

std::string help() {
  return R"(urma_admin - shows the devices of the C API of UMDK, and what processes have there

  urma_admin show                     the devices and their EIDs
  urma_admin show --whole --dev cxl0  what a device can do, too
  urma_admin show dev cxl0 jetty      the numbers of the Jetties that processes have there
  urma_admin show dev cxl0 jetty 1027 one of them
  urma_admin show dev udp_lo tp       the channels
  urma_admin show topo                the peers to which each device has channels
  urma_admin show dev udp_lo stats    how many packets each process has sent, and so on
  urma_admin show --json              all of it, for programs

  show dev DEV RESOURCE [ID]   jfc, jfs, jfr, jetty, jetty_group, seg (by its TokenID), tp, stats
                               (by the process); rc and tpreuse, of which there are none
  -d, --dev DEV                only this device
  --brief, --all               as in UMDK, for devices that consist of several: there are none
  -w, --whole                  also what the devices can do
  --json                       output for programs: each device, its processes, and all that their
                               pages show
  --version

The devices are those of this user's programs (URMA_DEVICES). The processes are those of this user,
or for root of all users, whose device has the EID, in C++ or C. A page shows 48 Jetties, JFSs,
JFRs and groups, 16 JFCs, 32 segments and 64 channels of a device, and tells how many more there
are: a list ends with these, and a count such as "48 to 60" says that some of them may be of its
kind.

Exit codes: 0 ok   1 error, no such device or resource   2 usage
)";
}

}  // namespace urma::apps::admin
