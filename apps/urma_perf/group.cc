// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/group.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/live.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/output.h"
#include "apps/urma_perf/self.h"
#include "apps/urma_perf/sender.h"

namespace urma::apps::perf {
namespace {

// The progress of all senders together, which they inherit.
class SharedProgress {
 public:
  SharedProgress()
      : at_(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                 0)) {
    if (at_ == MAP_FAILED) {
      throw Failure(Exit::error, fmt::format("starting senders: memory that they share: {}. Fix: "
                                             "end some processes",
                                             std::strerror(errno)));
    }
    progress_ = new (at_) Progress;
  }
  ~SharedProgress() { munmap(at_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;

  Progress* get() { return progress_; }

 private:
  void* at_;
  Progress* progress_ = nullptr;
};

// The processes of one measurement, from their start to their results.
class Group {
 public:
  Group(const Options& options, std::vector<Flow> flows, uint32_t processes)
      : options_(options),
        device_(!options.device.empty() ? options.device
                : options.self          ? std::string(default_device)
                                        : device_towards(options.host)),
        flows_(std::move(flows)),
        processes_(processes) {}

  // Returns the sum of all flows, with each of them; nothing at Ctrl-C.
  std::optional<Result> measure(const Case& what) {
    start_servers();
    start_senders(what);
    for (const auto& sender : senders_) {
      if (!sender->await_ready()) return failed(*sender);
    }
    Schedule schedule = schedule_for(options_);
    schedule.threads *= static_cast<uint32_t>(flows_.size());
    Live live({.form = Live::form_for(options_),
               .what = what,
               .device = device_,
               .schedule = schedule,
               .progress = progress_.get()});
    for (const auto& sender : senders_) sender->start();
    std::optional<Result> sum = results(what);
    live.end();
    return sum;
  }

 private:
  std::optional<Result> results(const Case& what) {
    Result sum;
    sum.what = what;
    sum.traffic = options_.traffic != nullptr ? options_.traffic->name : "bidirectional";
    sum.processes = processes_;
    sum.threads_mode = options_.threads_mode->name;
    sum.rate = options_.rate.value_or(0) * static_cast<double>(flows_.size());
    for (size_t i = 0; i < senders_.size(); ++i) {
      while (!senders_[i]->await_result()) {
        if (!interrupted()) continue;
        for (const auto& sender : senders_) sender->interrupt();
      }
      const auto one = senders_[i]->result();
      if (!one) return failed(*senders_[i]);
      sum.add_flow(flows_[i], *one);
    }
    return sum;
  }

  // Gives processors to the next process, in turn.
  int next_processor() {
    // Threads of one process need several processors.
    if (processors_.size() < 2 || options_.threads > 1) return -1;
    return processors_[next_processor_++ % processors_.size()];
  }

  void start_servers() {
    if (!options_.self) return;
    const std::string& named = options_.peer_device;
    for (const Flow& flow : flows_) {
      const uint32_t to = server_of(flow);
      if (servers_.contains(to)) continue;
      servers_[to] = std::make_unique<ChildServer>(
          options_, named.empty() ? options_.device : named, next_processor());
    }
  }

  // The server of a flow: its target; of the reads of a client that writes, too, its source.
  uint32_t server_of(const Flow& flow) const {
    const bool by_client = options_.traffic == nullptr && moves_both_ways(*flow.test);
    return by_client ? std::max(flow.from, flow.to) : flow.to;
  }

  void start_senders(const Case& what) {
    const bool shown = Live::form_for(options_) != Live::Form::none;
    for (const Flow& flow : flows_) {
      Case each = what;
      each.test = flow.test;
      senders_.push_back(std::make_unique<Sender>(
          options_,
          Sender::Place{.device = device_,
                        .host = options_.self ? servers_[server_of(flow)]->at() : options_.host,
                        .processor = options_.self ? next_processor() : -1,
                        .progress = shown ? progress_.get() : nullptr},
          each));
    }
  }

  // Throws a Failure for a sender that has failed; at Ctrl-C returns nothing.
  std::optional<Result> failed(Sender& sender) const {
    if (interrupted()) return std::nullopt;
    sender.end();
    const int code = sender.exit_code();
    throw Failure(code != 0 ? static_cast<Exit>(code) : Exit::error,
                  fmt::format("one of {} senders has no result, so there is none for all. Fix: see "
                              "its error message above",
                              senders_.size()));
  }

  const Options& options_;
  const std::string device_;
  const std::vector<Flow> flows_;
  const uint32_t processes_;
  const std::vector<int> processors_ = processors();
  size_t next_processor_ = 0;
  SharedProgress progress_;
  std::map<uint32_t, std::unique_ptr<ChildServer>> servers_;
  std::vector<std::unique_ptr<Sender>> senders_;  // destroyed first
};

// The median latencies of all sizes (N) with all numbers of processes (M).
class LatencyTable {
 public:
  void add(const Result& result) {
    cells_[result.what.bytes][result.processes] = result.us(0.5);
    if (std::ranges::find(processes_, result.processes) == processes_.end()) {
      processes_.push_back(result.processes);
    }
  }
  std::string text() const {
    std::string out = "p50 us, by size and processes\n    size";
    for (const uint32_t one : processes_) out += fmt::format(" {:>8}", one);
    out += '\n';
    for (const auto& [bytes, row] : cells_) {
      out += fmt::format("{:>8}", size_text(bytes));
      for (const uint32_t one : processes_) {
        const auto cell = row.find(one);
        out += fmt::format(" {:>8}", cell == row.end() ? "-" : three_digits(cell->second));
      }
      out += '\n';
    }
    return out;
  }
  bool is_table() const { return processes_.size() > 1; }

 private:
  std::vector<uint32_t> processes_;
  std::map<uint64_t, std::map<uint32_t, double>> cells_;
};

}  // namespace

Exit measure_group(const Options& options) {
  Output output(options, false);
  LatencyTable table;
  std::vector<uint64_t> numbers = options.processes;
  if (options.traffic == nullptr) numbers = {2};
  for (const uint64_t number : numbers) {
    const auto processes = static_cast<uint32_t>(number);
    for (const Case& what : options.cases()) {
      if (interrupted()) break;
      Group group(options,
                  options.traffic != nullptr ? options.traffic->flows(processes, *what.test)
                                             : both_directions(*what.test),
                  processes);
      const auto sum = group.measure(what);
      if (!sum) break;
      table.add(*sum);
      output.add(*sum);
    }
  }
  if (options.form == Options::Form::table && table.is_table()) print(table.text());
  return output.finish();
}

}  // namespace urma::apps::perf
