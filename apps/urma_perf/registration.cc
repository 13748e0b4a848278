// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/registration.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/common/captures.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/json_output.h"

namespace urma::apps::perf {
namespace {

// Address space whose pages are never touched, to be registered.
class Untouched {
 public:
  explicit Untouched(size_t bytes) : bytes_(bytes) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      throw Failure(
          Exit::error,
          fmt::format(
              "reg: the system refuses {} bytes of address space. Fix: give a smaller --size",
              bytes));
    }
    at_ = static_cast<std::byte*>(at);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  ~Untouched() { munmap(at_, bytes_); }

  std::span<std::byte> span() const { return {at_, bytes_}; }

 private:
  size_t bytes_;
  std::byte* at_ = nullptr;
};

enum Call : uint8_t { registering, unregistering, rotating, retiring, revoking, calls };
constexpr std::array<const char*, calls> names = {"register", "unregister", "rotate", "retire",
                                                  "revoke"};

struct Row {
  const char* memory;
  uint64_t bytes = 0;
  std::array<Histogram, calls> took{};
  uint64_t not_fenced = 0;  // calls of unregister after which a peer may still write
  uint64_t works = 0;       // works of the writer, per second
  uint64_t refused = 0;     // refused works of the writer, in total
};

template <class Function>
auto timed(Histogram& histogram, Function&& function) {
  const int64_t begun = now();
  auto result = function();
  histogram.record(static_cast<uint64_t>(now() - begun));
  return result;
}

class Registration {
 public:
  Registration(const Options& options, Device& device, bool mapped)
      : options_(options), device_(device), mapped_(mapped) {}

  // `writes` is called with the memory to which the writer is to write; it may do nothing.
  template <class Told>
  Row run(uint64_t bytes, Told&& writes) {
    Row row{.memory = mapped_ ? "mapped" : "own", .bytes = bytes};
    const Untouched memory(bytes);
    const auto make = [&] {
      return mapped_ ? device_.allocate(bytes) : device_.register_memory(memory.span());
    };
    const int64_t until = now() + static_cast<int64_t>(options_.seconds.value_or(1) * second);
    const int64_t apart = options_.churn > 0 ? second / static_cast<int64_t>(options_.churn) : 0;
    int64_t next = now();
    for (uint64_t cycle = 0; now() < until && !interrupted(); ++cycle) {
      Segment segment = must(timed(row.took[registering], make), "memory");
      if (mapped_ && !segment.mapped()) {
        throw Failure(
            Exit::error,
            fmt::format("reg: the window has no room for {} in one piece. Fix: give a larger "
                        "window (--device cxl:PATH?size=4G), a smaller --size, or --private",
                        size_text(bytes)));
      }
      writes(&segment);
      next += apart;
      while (now() < next) std::this_thread::yield();
      if (cycle % 2 == 0) {
        must(timed(row.took[rotating], [&] { return segment.rotate(); }), "rotate");
        fence(row, retiring, [&] { return segment.retire(); });
        fence(row, revoking, [&] { return segment.revoke(); });
      } else {
        fence(row, unregistering, [&] { return segment.unregister(); });
      }
    }
    writes(nullptr);
    return row;
  }

 private:
  // While the writer has no processor, waiting for it does not count as a failure.
  template <class Function>
  static void fence(Row& row, Call call, Function&& function) {
    const urma::Result<void> done = timed(row.took[call], function);
    if (done.status() != Status::not_fenced) return must(done, names[call]);
    ++row.not_fenced;
  }

  const Options& options_;
  Device& device_;
  bool mapped_;
};

// Writes 4 KiB repeatedly, as fast as possible, to the memory that it was given last.
class Writer {
 public:
  Writer(Device& device, const Segment& any, uint64_t bytes)
      : jetty_(must(device.jetty({.berths = 32}), "a Jetty")),
        there_(must(device.import(any.descriptor()), "the memory").segment),
        bytes_(std::min<uint64_t>(bytes, 4096)),
        thread_([this] { loop(); }) {
    tell(nullptr);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    over_ = true;
    thread_.join();
  }

  void tell(const Segment* segment) {
    const std::lock_guard lock(mutex_);
    there_.bytes = 0;
    if (segment == nullptr) return;
    const RemoteSegment local = segment->local();
    there_.address = local.address;
    there_.bytes = local.bytes;
    there_.token_id = local.token_id;
    there_.token = local.token;
  }
  uint64_t written() const { return written_; }
  uint64_t refused() const { return refused_; }

 private:
  void loop() {
    const std::vector<std::byte> data(bytes_);
    while (!over_) {
      RemoteSegment there;
      {
        const std::lock_guard lock(mutex_);
        there = there_;
      }
      while (there.bytes > 0 && jetty_.post(write(data, there)) == 1) {
      }
      for (const Completion& done : jetty_.wait(std::chrono::milliseconds(1))) {
        ++(done.ok() ? written_ : refused_);
      }
    }
  }

  Jetty jetty_;
  std::mutex mutex_;
  RemoteSegment there_;
  uint64_t bytes_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> refused_{0};
  std::thread thread_;
};

std::string cell(const Histogram& took) {
  if (took.count() == 0) return "-";
  const auto us = [&](double part) { return static_cast<double>(took.percentile(part)) / 1e3; };
  return fmt::format("{:.2f} / {:.1f}", us(0.5), us(0.99));
}

void print_row(const Row& row, bool churn) {
  std::string line = fmt::format("{:<7} {:>10}", row.memory, row.bytes);
  for (const Histogram& took : row.took) line += fmt::format("  {:>16}", cell(took));
  if (churn) line += fmt::format("  {:>9} {:>9} {:>10}", row.works, row.refused, row.not_fenced);
  print(line + '\n');
}

nlohmann::json to_json(const Row& row) {
  nlohmann::json out = {{"test", "reg"}, {"memory", row.memory}, {"size_bytes", row.bytes}};
  for (size_t call = 0; call < calls; ++call) {
    const Histogram& took = row.took[call];
    const auto us = [&](double part) { return static_cast<double>(took.percentile(part)) / 1e3; };
    out[names[call]] = {{"count", took.count()},
                        {"p50_us", us(0.5)},
                        {"p99_us", us(0.99)},
                        {"max_us", static_cast<double>(took.max()) / 1e3}};
  }
  out["works_per_second"] = row.works;
  out["refused"] = row.refused;
  out["not_fenced"] = row.not_fenced;
  return out;
}

Row measure(const Options& options, Device& device, bool mapped, uint64_t bytes) {
  Registration registration(options, device, mapped);
  if (options.churn == 0) return registration.run(bytes, [](const Segment*) {});
  apps::Captures captures("urma_perf");  // destroyed after the device
  Device writing = captures.watch(
      must(open(options.device.empty() ? default_device : options.device), "a device"));
  const Segment any = must(device.allocate(4096), "memory");
  Writer writer(writing, any, bytes);
  const int64_t begun = now();
  Row row = registration.run(bytes, [&](const Segment* segment) { writer.tell(segment); });
  row.works = static_cast<uint64_t>(static_cast<double>(writer.written()) / seconds(now() - begun));
  row.refused = writer.refused();
  return row;
}

}  // namespace

Exit measure_registration(const Options& options) {
  // The peer that writes to this device needs answers between the measured calls.
  const Threads threads = options.churn > 0 ? Threads::served : options.threads_mode->threads;
  const std::string text(options.device.empty() ? default_device : options.device);
  apps::Captures captures("urma_perf");  // destroyed after the device
  Device device = captures.watch(must(open(text, {.threads = threads}), "a device"));
  bool mapped = false;
  if (!options.own_memory) mapped = must(device.allocate(4096), "memory").mapped();
  std::vector<uint64_t> sizes = options.sizes;
  if (sizes.empty()) sizes = {4096, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
  nlohmann::json results = nlohmann::json::array();
  const bool json = options.form == Options::Form::json;
  if (!json) {
    std::string header =
        fmt::format("{}, us: median / 99 %\n{:<7} {:>10}", text, "memory", "bytes");
    for (const char* name : names) header += fmt::format("  {:>16}", name);
    if (options.churn > 0) {
      header += fmt::format("  {:>9} {:>9} {:>10}", "writes/s", "refused", "not fenced");
    }
    print(header + '\n');
  }
  for (const bool of_the_window : {false, true}) {
    if (of_the_window && !mapped) continue;
    for (const uint64_t bytes : sizes) {
      if (interrupted()) break;
      const Row row = measure(options, device, of_the_window, bytes);
      if (json) {
        results.push_back(to_json(row));
      } else {
        print_row(row, options.churn > 0);
      }
    }
  }
  if (json) print_json({{"schema", json_schema}, {"results", results}});
  return interrupted() ? Exit::interrupted : Exit::ok;
}

}  // namespace urma::apps::perf
