// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "apps/common/command_line.h"
#include "apps/common/devices.h"
#include "apps/common/failure.h"
#include "apps/common/near_names.h"
#include "apps/common/servers.h"
#include "apps/urma_perf/budget.h"
#include "apps/urma_perf/foreign_options.h"
#include "apps/urma_perf/help.h"
#include "apps/urma_perf/timetable.h"

namespace urma::apps::perf {
namespace {

// The name of a GPU, as PyTorch writes it.
struct NameOfGpu {
  static std::optional<uint64_t> read(std::string_view word) {
    constexpr std::string_view before = "cuda:";
    if (!word.starts_with(before)) return std::nullopt;
    return WholeNumber{0, 31}.read(word.substr(before.size()));
  }
  static std::string valid() { return "cuda:0, or another number of a GPU"; }
};

using Asked = CommandLine::Asked;

// Words and options from which other values of Options are derived.
struct GivenWords {
  std::string what;
  std::array<bool, threads_modes.size()> modes{};
  std::string host;  // or the first file of a comparison
  std::string file;
  std::vector<std::string> thresholds;
  bool json = false;
  bool json_stream = false;
  bool csv = false;
  bool no_verify = false;
  bool budget = false;
  bool selftest = false;
  bool ping = false;
  bool server = false;  // --server, in place of the word
};

// The value of --jetties. With --budget it may be much larger.
struct JettyCount {
  const bool& budget;

  WholeNumber range() const {
    return budget ? WholeNumber{least_budget_jetties, most_budget_jetties}
                  : WholeNumber{1, most_jetties};
  }
  std::optional<uint32_t> read(std::string_view word) const {
    const auto count = range().read(word);
    return count ? std::optional(static_cast<uint32_t>(*count)) : std::nullopt;
  }
  std::string valid() const { return range().valid(); }
};

// A number of --entries.
struct ListEntries {
  std::optional<uint32_t> read(std::string_view word) const {
    const auto count = WholeNumber{1, Plan::most_entries}.read(word);
    return count ? std::optional(static_cast<uint32_t>(*count)) : std::nullopt;
  }
  std::string valid() const { return WholeNumber{1, Plan::most_entries}.valid(); }
};

OneOf<NamedRetransmission> any_retransmission() {
  const NamedRetransmissions all = named_retransmissions();
  return {std::span(all.first, all.last)};
}

// Returns the words that may stand first.
std::vector<std::string> commands() {
  std::vector<std::string> out = {"server", "reg", "compare", "main"};
  std::istringstream names(test_names());
  for (std::string name; std::getline(names >> std::ws, name, ',');) out.push_back(name);
  return out;
}

void add_options(CommandLine& line, Options& options, GivenWords& words) {
  line.two_screens();
  line.flag("--budget", words.budget);
  line.flag("--selftest", words.selftest);
  line.flag("--ping", words.ping);
  line.text("what", words.what);
  line.offer("what", commands());
  line.text("host", words.host);
  line.flag("--self,--loopback", options.self);
  line.flag("-s,--server", words.server);
  line.value("--size", options.sizes, ListOf{Bytes{max_write_bytes}});
  line.flag("--sweep", options.sweep);
  line.value("--seconds", options.seconds, Seconds{0.01, 3600});
  line.value("--count", options.count, WholeNumber{.least = 1});
  line.value("--rate", options.rate, MessageRate{});
  line.value("--depth", options.depth, WholeNumber{1, most_depth});
  line.value("--signal-every", options.signal_every, WholeNumber{1, most_depth});
  line.value("--jetties", options.jetties, ListOf{JettyCount{words.budget}});
  line.value("--threads", options.threads, WholeNumber{1, most_jetties});
  line.value("--rounds", options.rounds, WholeNumber{1, 1000});
  line.value("--seed", options.seed, WholeNumber{0, UINT32_MAX});
  line.text("--device", options.device);
  line.value("--retransmit", options.retransmit, any_retransmission());
  line.text("--cc", options.congestion);
  line.text("--peer-device", options.peer_device);
  for (size_t i = 0; i < threads_modes.size(); ++i) {
    line.flag(threads_modes[i].option, words.modes[i]);
  }
  line.flag("--no-verify", words.no_verify);
  line.flag("--private", options.own_memory);
  line.value("--memory", options.gpu, NameOfGpu{});
  line.value("--spread", options.spread, Bytes{most_memory_bytes});
  line.value("--order", options.ordering.order, OneOf{named_orders});
  line.value("--mode", options.ordering.mode, OneOf{named_modes});
  line.value("--fence-every", options.ordering.fence_every, WholeNumber{1, most_depth});
  line.value("--atomic", options.atomic, OneOf{named_atomics});
  line.flag("--bidirectional", options.bidirectional);
  line.value("--pattern", options.traffic, OneOf{all_traffic});
  line.value("--processes", options.processes, ListOf{WholeNumber{2, most_processes}});
  line.value("--block", options.block, Bytes{max_write_bytes});
  line.value("--blocks", options.blocks, WholeNumber{1, Plan::most_blocks});
  line.text("--plan", options.plan_file);
  line.value("--entries", options.entries, ListOf{ListEntries{}});
  line.value("--churn", options.churn, WholeNumber{1, 1'000'000});
  line.flag("--limit", options.limit);
  line.flag("--profile", options.profile);
  line.flag("--summed", options.summed);
  line.flag("--short", options.brief);
  line.text("file", words.file);
  line.flag("-v,--verbose", options.verbose);
  line.flag("-q,--quiet", options.quiet);
  line.flag("--once", options.once);
  line.value("--cpu", options.cpu, WholeNumber{0, 1023});
  line.value("--report-to", options.report_to, WholeNumber{0, 1023});
  line.value("--speaks", options.speaks, WholeNumber{0, INT32_MAX});
}

// The options that say in which form and where results appear.
void add_result_options(CommandLine& line, Options& options, GivenWords& words) {
  line.flag("--wide", options.wide);
  line.flag("--json", words.json);
  line.flag("--json-stream", words.json_stream);
  line.flag("--csv", words.csv);
  line.texts("--fail-if", words.thresholds);
  line.text("--json-file", options.json_file);
  line.text("--hist", options.histogram_file);
  line.text("--plot", options.plot_file);
}

void choose_comparison(const GivenWords& words, Options& options) {
  options.mode = Options::Mode::comparison;
  if (words.host.empty() || words.file.empty()) {
    usage("compare needs two files. Fix: urma_perf compare before.json after.json");
  }
  options.before = words.host;
  options.after = words.file;
}

// Refuses a list in a form that --sweep has in other tools: size=64..4M.
void refuse_ranges(const CommandLine& line, const GivenWords& words) {
  if (!line.given("--sweep")) return;
  for (const std::string* const word : {&words.what, &words.host, &words.file}) {
    if (word->find('=') == word->npos) continue;
    usage(
        fmt::format("--sweep takes no value (\"{}\"), and sweeps all sizes. Fix: give --sweep "
                    "alone, or --size 64,4K,1M",
                    *word));
  }
}

void choose_host(const GivenWords& words, Options& options) {
  if (!words.file.empty()) {
    usage(fmt::format("\"{}\" is one word too many. Fix: see urma_perf --help", words.file));
  }
  if (words.host.empty()) return;
  const auto host = Host{}.read(words.host);
  if (!host)
    usage(fmt::format("host: \"{}\" is invalid. Fix: give {}", words.host, Host{}.valid()));
  options.host = *host;
}

// Returns whether a word in place of a test is the host of the main measurement.
bool is_host(const std::string& word) {
  return word == "localhost" || (word.find_first_of(".:") != word.npos && Host{}.read(word));
}

// Chooses the modes that options name, and not a word. Returns whether one of them was given.
bool choose_mode_by_option(const GivenWords& words, Options& options) {
  using Mode = Options::Mode;
  if (words.budget) {
    options.mode = Mode::budget;
    if (!words.what.empty() || options.self) {
      usage(
          "--budget takes no test, no server and no --self. Fix: urma_perf --budget, with or "
          "without --jetties N");
    }
    return true;
  }
  if (words.selftest) {
    options.mode = Mode::selftest;
    if (!words.what.empty() || words.ping) {
      usage(
          "--selftest runs both sides here and takes no test, no host and no --ping. Fix: "
          "urma_perf --selftest");
    }
    return true;
  }
  if (!words.ping) return false;
  options.mode = Mode::ping;
  if (options.self || !options.host.empty()) {
    usage("--ping takes a host, and no test and no --self. Fix: urma_perf --ping HOST");
  }
  const std::string host = words.what.empty() ? "localhost" : words.what;
  const auto read = Host{}.read(host);
  if (!read) usage(fmt::format("host: \"{}\" is invalid. Fix: give {}", host, Host{}.valid()));
  options.host = *read;
  return true;
}

// Returns the first word that is a number, as after an option of perftest that has no value here.
std::string number_among(const GivenWords& words) {
  for (const std::string* const word : {&words.what, &words.host, &words.file}) {
    const bool digits = !word->empty() && word->find_first_not_of("0123456789") == word->npos;
    if (digits) return *word;
  }
  return {};
}

// A variable of a shell that is not set would otherwise choose a default, or leave a file out.
void refuse_empty(const CommandLine& line, const GivenWords& words, const Options& options) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"what", &words.what},
      {"host", &words.host},
      {"file", &words.file},
      {"--device", &options.device},
      {"--peer-device", &options.peer_device},
      {"--cc", &options.congestion},
      {"--plan", &options.plan_file},
      {"--json-file", &options.json_file},
      {"--hist", &options.histogram_file},
      {"--plot", &options.plot_file}};
  for (const auto& [name, text] : texts) {
    if (!line.given(name) || !text->empty()) continue;
    const bool option = *name == '-';
    usage(fmt::format("{}: an empty text is invalid. Fix: give a value, or leave {} out",
                      option ? name : "a test, host or file", option ? name : "the quotes"));
  }
}

// --server is the word server. Refuses values of perftest's options of the same letter.
void choose_server(const CommandLine& line, GivenWords& words) {
  const std::string number = number_among(words);
  if (line.given("--server") && !number.empty()) {
    usage(fmt::format("-s starts a server, and takes no size. Fix: give --size {}", number));
  }
  if (line.given("--quiet") && !number.empty()) {
    usage(
        fmt::format("-q prints no progress, and takes no number. Fix: give --jetties {}", number));
  }
  if (!words.server) return;
  if (!words.what.empty() && words.what != "server") {
    usage(
        fmt::format("--server takes no test and no host (\"{}\"). Fix: run urma_perf --server, and "
                    "on the other machine urma_perf TEST HOST",
                    words.what));
  }
  words.what = "server";
}

void choose_mode(const GivenWords& words, Options& options) {
  using Mode = Options::Mode;
  const std::string& what = words.what;
  if (what == "compare") return choose_comparison(words, options);
  choose_host(words, options);
  if (choose_mode_by_option(words, options)) return;
  if (what == "server") {
    options.mode = Mode::server;
    if (!options.host.empty() || options.self) {
      usage(
          "server takes no host and no --self. Fix: run urma_perf server, and on the other machine "
          "urma_perf TEST HOST; or urma_perf --self TEST");
    }
    return;
  }
  if (what.empty() || what == "main") {
    options.mode = Mode::main_job;
    if (options.self != options.host.empty()) {
      usage(what.empty() ? "missing command. Fix: urma_perf --self, urma_perf server, urma_perf "
                           "TEST HOST, or see --help"
                         : "main needs a host, or runs both sides here. Fix: urma_perf --self, or "
                           "urma_perf main HOST");
    }
    return;
  }
  if (is_host(what) && options.host.empty() && !options.self) {
    options.mode = Mode::main_job;
    options.host = what;
    return;
  }
  if (what == "reg") {
    options.mode = Mode::registration;
    if (options.self && options.host.empty()) return;
    usage("reg is measured in this process. Fix: urma_perf reg --self");
  }
  options.mode = Mode::test;
  options.test = find_test(what);
  if (options.test == nullptr) {
    const std::string near = near_names(what, commands());
    usage(near.empty() ? fmt::format("\"{}\" is not a test. Fix: name server, reg, compare, or one "
                                     "of {}; or a host, behind \"main\"",
                                     what, test_names())
                       : fmt::format("\"{}\" is not a test. Fix: perhaps {}", what, near));
  }
  if (options.self && !options.host.empty()) {
    const std::string why =
        find_test(options.host) != nullptr
            ? fmt::format("{} and {}: one test at a time", what, options.host)
            : fmt::format("--self runs both sides here and takes no host (\"{}\")", options.host);
    usage(why + ". Fix: leave one of them out");
  }
  if (!options.self && options.host.empty()) options.host = "localhost";
}

// With --self the device is the one that the user has chosen for `open`, unless an option names it.
void choose_device(const CommandLine& line, const GivenWords& words, Options& options) {
  if (line.given("--device")) {
    options.device_from = "--device";
    return;
  }
  if (words.budget || words.selftest || words.what == "compare") return;
  const auto chosen = chosen_device_setting();
  if (!chosen) return;
  options.device_from = chosen->source;
  if (options.self) options.device = chosen->value;
}

void choose_form(const CommandLine& line, const GivenWords& words, Options& options) {
  line.exclude({"--json", "--json-stream", "--csv"});
  using Form = Options::Form;
  options.form = words.json          ? Form::json
                 : words.json_stream ? Form::json_stream
                 : words.csv         ? Form::csv
                                     : Form::table;
  for (const std::string& text : words.thresholds) {
    options.thresholds.push_back(Threshold::read(text));
  }
}

void choose_threads(const CommandLine& line, const GivenWords& words, Options& options) {
  std::vector<std::string> modes;
  for (const ThreadsMode& mode : threads_modes) modes.emplace_back(mode.option);
  line.exclude(modes);
  const auto several = [](const std::string& device) {
    return device.find("engines=") != std::string::npos;
  };
  for (size_t i = 0; i < threads_modes.size(); ++i) {
    // A device of several engines cannot be inlined.
    const bool first_possible = line.first_given(modes) == std::nullopt &&
                                threads_modes[i].threads == Threads::automatic &&
                                (several(options.device) || several(options.peer_device));
    if (words.modes[i] || first_possible) options.threads_mode = &threads_modes[i];
  }
  // A thread has at least one Jetty; one each, unless more are asked for.
  if (!line.given("--jetties")) options.jetties = {options.threads};
}

// Refuses options that belong to tests.
void refuse_options_of_tests(const CommandLine& line, const Options& options) {
  using Mode = Options::Mode;
  if (options.mode == Mode::test) return;
  auto other = line.first_given({"--sweep", "--depth", "--signal-every", "--threads", "--rounds",
                                 "--limit", "--summed", "--memory", "--spread", "--order", "--mode",
                                 "--fence-every", "--atomic", "--seed", "--rate", "--hist",
                                 "--bidirectional", "--pattern", "--processes"});
  if (!other && options.mode != Mode::ping) other = line.first_given({"--count"});
  if (!other && options.mode != Mode::registration) {
    other = line.first_given({"--size", "--seconds"});
  }
  if (!other && options.mode != Mode::budget) other = line.first_given({"--jetties"});
  if (!other) return;
  usage(fmt::format("{} needs a test. Fix: name one of {}", *other, test_names()));
}

// Refuses options that mean nothing to --ping and --selftest.
void refuse_options_of_results(const CommandLine& line, const Options& options) {
  using Mode = Options::Mode;
  if (options.mode != Mode::ping && options.mode != Mode::selftest) return;
  const char* const mode = options.mode == Mode::ping ? "--ping" : "--selftest";
  const auto other =
      line.first_given({"--json-file", "--no-verify", "--wide", "--once", "--report-to", "--self"});
  if (!other) return;
  usage(fmt::format("{} means nothing to {}. Fix: leave it out: urma_perf {}", *other, mode, mode));
}

// Refuses options that this mode does not have.
void refuse_others(const CommandLine& line, const Options& options) {
  using Mode = Options::Mode;
  if (line.given("--churn") && options.mode != Mode::registration) {
    usage(
        "--churn: only reg revokes memory while another device writes there. Fix: run urma_perf "
        "reg "
        "--self --churn N, or leave --churn out");
  }
  if (options.brief && (options.mode != Mode::main_job || !options.self)) {
    usage("--short: only the main measurement has a short form. Fix: urma_perf --self --short");
  }
  refuse_options_of_tests(line, options);
  refuse_options_of_results(line, options);
  const bool server = options.mode == Mode::server;
  const bool job = options.mode == Mode::main_job;
  if (const auto results = line.first_given({"--json-stream", "--csv", "--fail-if", "--plot"});
      results && !job && options.mode != Mode::test) {
    usage(fmt::format("{} is about the results of tests. Fix: name one of {}, or --self", *results,
                      test_names()));
  }
  if (options.profile && !server && options.mode != Mode::test) {
    usage(
        "--profile needs a test, or a server. Fix: urma_perf --self write_imm_lat --profile, or "
        "urma_perf server --profile");
  }
  for (const std::string& device : {options.device, options.peer_device}) {
    if (options.mode != Mode::registration) apps::refuse_simulation(device);
  }
  if (server &&
      (options.form != Options::Form::table || !options.json_file.empty() || !options.verify)) {
    usage(
        "server: --json, --json-file and --no-verify are options of the client, which prints the "
        "results and chooses the checks. Fix: leave them out here, and give them to urma_perf TEST "
        "HOST");
  }
  if (options.once && !server) {
    usage("--once: only a server ends after one client. Fix: leave it out");
  }
  if (!options.peer_device.empty() && job && options.device.empty()) {
    usage("--peer-device needs --device. Fix: give --device, too");
  }
  if (!options.peer_device.empty() && !options.self) {
    usage(
        "--peer-device needs --self. Fix: run urma_perf server --device STRING on the other side");
  }
}

// Returns why these options leave no memory mapped; empty if they do not.
std::string why_not_mapped(const Options& options) {
  if (options.own_memory) return "--private";
  if (options.gpu) return "--memory";
  for (const std::string& device : {options.device, options.peer_device}) {
    if (!device.empty() && !device.starts_with("cxl:")) return device + " maps no memory of peers";
  }
  return {};
}

void check_lane(const Options& options) {
  if (!options.test->lane) return;
  if (options.profile) {
    usage(fmt::format(
        "--profile: {} posts no works, so there are no stages to measure. Fix: leave "
        "--profile out, or measure works: {}",
        options.test->name, options.test->name.substr(std::string_view("lane_").size())));
  }
  if (const std::string reason = why_not_mapped(options); !reason.empty()) {
    usage(lane_without_mapping(*options.test, reason));
  }
  if (options.jetties == std::vector{options.threads}) return;
  usage(
      fmt::format("--jetties {}: {} uses one lane, of one Jetty, in each thread. Fix: leave "
                  "--jetties out; --threads 2 makes two Jetties",
                  fmt::join(options.jetties, ","), options.test->name));
}

// Refuses two results in one file.
void check_files(const Options& options) {
  std::vector<std::pair<std::string_view, std::string_view>> files;
  for (const auto& [option, path] :
       {std::pair<std::string_view, std::string_view>{"--json-file", options.json_file},
        {"--hist", options.histogram_file},
        {"--plot", options.plot_file}}) {
    if (path.empty()) continue;
    const auto same = std::ranges::find(files, path, &decltype(files)::value_type::second);
    if (same != files.end()) {
      usage(fmt::format("{} and {} name one file, {}. Fix: name two files", same->first, option,
                        path));
    }
    files.emplace_back(option, path);
  }
  const std::string ending = std::filesystem::path(options.plot_file).extension();
  if (ending.empty() || ending == ".svg") return;
  usage(fmt::format("--plot {}: drawings are SVG. Fix: name a file that ends in .svg",
                    options.plot_file));
}

void check_histogram_file(const Options& options) {
  if (options.histogram_file.empty()) return;
  const size_t rows =
      options.cases().size() * (options.traffic != nullptr ? options.processes.size() : 1);
  if (rows == 1) return;
  if (options.plan) {
    usage(
        fmt::format("--hist: the file has the histogram of one result, and this run has {}. Fix: "
                    "leave --sweep and --entries out",
                    rows));
  }
  usage(
      fmt::format("--hist: the file has the histogram of one result, and this run has {}. Fix: "
                  "name one --size, or give --plot",
                  rows));
}

// Refuses options of kv in other tests, and those of other tests in kv.
void check_plan(const CommandLine& line, const Options& options) {
  const bool plan = options.mode == Options::Mode::test && options.test->plan;
  if (!plan) {
    const auto other = line.first_given({"--block", "--blocks", "--plan", "--entries"});
    if (!other) return;
    usage(
        fmt::format("{0}: only kv moves blocks. Fix: run urma_perf kv, or leave {0} out", *other));
  }
  line.exclude({"--plan", "--block"});
  line.exclude({"--plan", "--blocks"});
  line.exclude({"--sweep", "--entries"});
  const auto other = line.first_given({"--size", "--depth", "--signal-every", "--threads",
                                       "--jetties", "--bidirectional", "--pattern", "--plot"});
  if (!other) return;
  usage(fmt::format(
      "{0}: kv posts one list of blocks, whose sizes --block, --blocks or --plan choose, "
      "to one Jetty. Fix: leave {0} out",
      *other));
}

void choose_plan(Options& options) {
  if (options.mode != Options::Mode::test || !options.test->plan) return;
  constexpr uint32_t most_swept = 128;
  if (options.sweep) {
    for (uint32_t entries = 1; entries <= most_swept; entries *= 2)
      options.entries.push_back(entries);
  }
  options.plan = std::make_shared<const Plan>(options.plan_file.empty()
                                                  ? Plan::of(options.block, options.blocks)
                                                  : Plan::read(options.plan_file));
}

// Returns how many seconds would be long enough for a rate: ten messages in each round.
double seconds_for_rate(const Options& options) {
  constexpr double least_messages = 10;
  return least_messages * options.rounds / *options.rate;
}

void check_rate(const Options& options) {
  if (!options.rate) return;
  if (options.test->ping_pong() || options.test->lane || options.test->plan) {
    usage(
        fmt::format("--rate: {} sends a message only after the one before, and not when it is due. "
                    "Fix: run write_lat, read_lat, atomic_lat or a _bw test",
                    options.test->name));
  }
  if (options.limit || options.signal_every != 1) {
    usage(fmt::format("--rate and --{} exclude each other, because {}. Fix: leave one of them out",
                      options.limit ? "limit" : "signal-every",
                      options.limit ? "the limit has no rate" : "each work has a time of its own"));
  }
  const double needed = seconds_for_rate(options);
  if (options.seconds_each() >= needed) return;
  usage(
      fmt::format("--rate {}: fewer than ten messages in each of {} rounds show no rate. Fix: give "
                  "--seconds {:.0f}, or a higher --rate",
                  *options.rate, options.rounds, std::ceil(needed)));
}

// Refuses what several processes cannot do.
void check_group(const CommandLine& line, Options& options) {
  using Mode = Options::Mode;
  if (options.mode != Mode::test) return;
  if (line.given("--processes") && options.traffic == nullptr) {
    usage("--processes needs a pattern. Fix: give --pattern incast, too");
  }
  if (!options.bidirectional && options.traffic == nullptr) return;
  line.exclude({"--bidirectional", "--pattern"});
  const auto other = line.first_given({"--limit", "--profile", "--rounds", "--verbose", "--cpu"});
  if (other) {
    usage(
        fmt::format("{} is not for several processes, which measure one round at the same time. "
                    "Fix: leave {} out",
                    *other, *other));
  }
  const bool by_client = moves_both_ways(*options.test);
  if (options.bidirectional && !by_client && !options.self) {
    usage(
        fmt::format("--bidirectional: a server sends only answers, so {0} in both directions needs "
                    "processes that run here. Fix: run write_bw, or urma_perf --self {0} "
                    "--bidirectional",
                    options.test->name));
  }
  if (options.traffic != nullptr && !options.self) {
    usage("--pattern starts all its processes here. Fix: give --self, and no host");
  }
  for (const uint64_t number : options.processes) {
    if (options.traffic == nullptr) break;
    const std::string why = objection(*options.traffic, static_cast<uint32_t>(number));
    if (!why.empty()) usage(why);
  }
  options.rounds = 1;
  // More processes than processors would wait for each other if they all polled.
  const bool chosen = line.first_given({"--inline", "--auto", "--served"}).has_value();
  const bool many = options.traffic != nullptr || !by_client;
  if (many && !chosen) options.threads_mode = &threads_modes.back();
}

// Refuses conditions for numbers that no result of this run has.
void check_thresholds(const Options& options) {
  const bool several = options.bidirectional || options.traffic != nullptr;
  const bool limited = options.limit || options.mode == Options::Mode::main_job;
  for (const Threshold& one : options.thresholds) {
    const std::string_view needs = one.measure().needs;
    if (needs == "kv") {
      if (options.plan) continue;
      usage(
          fmt::format("--fail-if {0}: only kv has that. Fix: run urma_perf kv, or leave --fail-if "
                      "{0} out",
                      one.text()));
    }
    const bool has = needs.empty() || (needs == "--limit" && limited) ||
                     (needs == "--rate" && options.rate) || (needs == "--pattern" && several);
    if (!has) {
      usage(
          fmt::format("--fail-if {0}: only results with {1} have that. Fix: give {1}, too, or "
                      "leave --fail-if {0} out",
                      one.text(), needs));
    }
    if (one.measure().counter && several) {
      usage(
          fmt::format("--fail-if {}: several processes have no counters. Fix: name another "
                      "number, or leave --pattern and --bidirectional out",
                      one.text()));
    }
  }
}

void check_cases(const Options& options) {
  if (options.mode != Options::Mode::test) return;
  const uint32_t fewest = *std::ranges::min_element(options.jetties);
  if (options.threads > fewest) {
    usage(
        fmt::format("--threads {} with --jetties {}: each thread has at least one Jetty of its "
                    "own. Fix: give as many --jetties as --threads, or more",
                    options.threads, fewest));
  }
  if (options.sweep && !options.sizes.empty()) {
    usage(
        "--sweep and --size exclude each other, because both choose the sizes. Fix: leave one of "
        "them out");
  }
  check_lane(options);
  check_rate(options);
  check_histogram_file(options);
  for (const Case& what : options.cases()) {
    if (const std::string why = objection(what); !why.empty()) usage(why);
  }
}

}  // namespace

Case Options::case_for(uint64_t bytes) const {
  const uint32_t whole_groups = default_depth(*test, bytes) / signal_every * signal_every;
  return {.test = test,
          .bytes = bytes,
          .depth = depth.value_or(std::max(whole_groups, test->bandwidth() ? signal_every : 1)),
          .jetties = jetties.front(),
          .signal_every = signal_every,
          .verify = verify,
          .limit = limit,
          .summed = summed,
          .own_memory = own_memory || gpu.has_value(),
          .gpu = gpu,
          .spread = spread,
          .ordering = ordering,
          .atomic = atomic,
          .seed = seed};
}

Case Options::case_for_lists(uint32_t entries) const {
  const Plan moved = entries == 0 ? *plan : plan->gathered();
  Case out = case_for(moved.bytes());
  out.plan = moved.shape(entries);
  out.depth = std::max(out.plan.works_at_once, works_of_one_write(out.bytes));
  return out;
}

double Options::seconds_each() const {
  constexpr double centuries = 1e9;
  if (seconds) return *seconds;
  if (count) return centuries;
  if (traffic != nullptr) return sweep ? 0.2 : 1;
  // Several rows take less time each.
  return sweep || mode == Mode::main_job ? 1 : 2;
}

// Each number of Jetties has a row of each size.
std::vector<Case> Options::cases() const {
  std::vector<Case> cases;
  for (const uint32_t count : jetties) {
    for (Case& what : cases_of_sizes()) cases.emplace_back(what).jetties = count;
  }
  return cases;
}

std::vector<Case> Options::cases_of_sizes() const {
  constexpr uint64_t small = 64;
  constexpr uint64_t word = most_atomic_bytes;
  constexpr uint64_t large = 64 * 1024;
  constexpr uint64_t least_swept = 8;
  constexpr uint64_t most_swept = 4 << 20;
  std::vector<Case> cases;
  if (test->plan) {
    cases.push_back(case_for_lists(0));
    for (const uint32_t count : entries) cases.push_back(case_for_lists(count));
    return cases;
  }
  if (sweep && test->atomics()) {
    for (uint64_t bytes = 1; bytes <= word; bytes *= 2) cases.push_back(case_for(bytes));
    return cases;
  }
  if (sweep) {
    const uint64_t most = test->sends() ? std::min(max_send_bytes, most_swept)
                                        : (traffic != nullptr ? 2 * most_swept : most_swept);
    for (uint64_t bytes = traffic != nullptr ? least_swept / 2 : least_swept; bytes <= most;
         bytes *= 2)
      cases.push_back(case_for(bytes));
    return cases;
  }
  for (const uint64_t bytes : sizes) cases.push_back(case_for(bytes));
  if (!sizes.empty()) return cases;
  cases.push_back(case_for(test->atomics() ? word : test->bandwidth() ? large : small));
  return cases;
}

Options parse_options(int count, char** arguments) {
  Options options;
  GivenWords words;
  CommandLine line("urma_perf", help_all);
  add_options(line, options, words);
  add_result_options(line, options, words);
  for (const ForeignOption& one : foreign_options) line.foreign(one.name, one.instead);
  const Asked asked = line.parse(count, arguments);
  options.command.assign(arguments, arguments + count);
  if (asked != Asked::nothing) {
    options.mode = asked == Asked::help_all  ? Options::Mode::help_all
                   : asked == Asked::version ? Options::Mode::version
                                             : Options::Mode::help;
    return options;
  }
  refuse_empty(line, words, options);
  refuse_ranges(line, words);
  choose_server(line, words);
  choose_device(line, words, options);
  choose_threads(line, words, options);
  options.verify = !words.no_verify;
  choose_form(line, words, options);
  choose_mode(words, options);
  refuse_others(line, options);
  check_plan(line, options);
  choose_plan(options);
  check_group(line, options);
  check_thresholds(options);
  check_cases(options);
  if (options.bidirectional || options.traffic != nullptr) options.mode = Options::Mode::group;
  check_files(options);
  return options;
}

}  // namespace urma::apps::perf
