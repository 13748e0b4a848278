// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "apps/common/captures.h"
#include "apps/common/devices.h"
#include "apps/common/program.h"
#include "apps/urma_notify/lines.h"

namespace urma::apps::notify {
namespace {

// After such a failure the other files would fail, too.
bool ends_all(Exit exit) {
  return exit == Exit::peer_lost || exit == Exit::interrupted || exit == Exit::version_mismatch;
}

class Delivery {
 public:
  Delivery(const Options& options, std::span<const Item> items, const Voice& voice,
           Verdict& verdict)
      : options_(options), items_(items), voice_(voice), verdict_(verdict) {}

  // Repeats attempts. Throws the Failure that ended the last one.
  void run() {
    for (auto until = Clock::now(); !over();) {
      try {
        attempt(until);
      } catch (const Failure& failure) {
        if (!reached_ || failure.exit() != Exit::peer_lost || Clock::now() > until) throw;
        complain(fmt::format("{}{}; trying again", voice_.prefix, failure.what()));
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      }
    }
  }

 private:
  bool over() const { return verdict_.sent.size() == items_.size(); }
  const Item& next() const { return items_[verdict_.sent.size()]; }

  // Returns how many of those that lie in the next item, if it is a folder, have failed. They come
  // directly before it.
  uint64_t missing() const {
    const std::string inside = next().name + "/";
    uint64_t count = 0;
    for (auto one = verdict_.sent.rbegin(); one != verdict_.sent.rend(); ++one) {
      if (!one->name.starts_with(inside)) break;
      if (one->exit != Exit::ok) ++count;
    }
    return count;
  }

  // Sends items until all were tried, or one has failed.
  void attempt(Clock::time_point& until) {
    while (!over() && next().kind == Item::Kind::unsent) {
      record({.name = next().name, .exit = Exit::error, .error = next().why});
    }
    if (over()) return;
    const std::string& device_text =
        options_.devices.empty() ? apps::device_towards(verdict_.host) : options_.devices[0];
    apps::Captures captures("urma_notify");  // destroyed after the device
    Device device = captures.watch(apps::open_device(device_text));
    Sender sender(options_, verdict_.host, device, voice_);
    try {
      sender.meet();
      while (!over() && next().kind != Item::Kind::unsent) record(send(sender));
    } catch (const Failure&) {
      if (sender.reached()) {
        reached_ = true;
        until = Clock::now() + std::chrono::seconds(options_.patience_seconds);
      }
      if (!failed_) throw;
      record(*std::exchange(failed_, std::nullopt));
    }
  }

  // Throws again what a sender throws. If it concerns this item alone, `failed_` has it then.
  Sent send(Sender& sender) {
    try {
      return sender.send(next(), missing());
    } catch (const Failure& failure) {
      if (!ends_all(failure.exit())) {
        failed_ = {.name = next().name,
                   .folder = next().kind == Item::Kind::folder,
                   .exit = failure.exit(),
                   .error = failure.what()};
      }
      throw;
    }
  }

  // The error of a single file is printed at the end, as that of the program.
  void record(Sent sent) {
    if (sent.exit != Exit::ok && items_.size() > 1 && voice_.lines) {
      complain(voice_.prefix + sent.error);
    }
    verdict_.sent.push_back(std::move(sent));
  }

  const Options& options_;
  std::span<const Item> items_;
  const Voice& voice_;
  Verdict& verdict_;
  bool reached_ = false;
  std::optional<Sent> failed_;
};

std::string_view name_of(Sent::Result result) {
  switch (result) {
    case Sent::Result::sent:
      return "sent";
    case Sent::Result::same:
      return "same";
    case Sent::Result::incomplete:
      return "incomplete";
    default:
      return "failed";
  }
}

nlohmann::json to_json(const Sent& sent) {
  nlohmann::json out = {{"name", sent.name},
                        {"kind", sent.folder ? "folder" : "file"},
                        {"result", name_of(sent.result)}};
  if (sent.exit != Exit::ok) {
    out["exit"] = static_cast<int>(sent.exit);
    out["error"] = sent.error;
  } else if (!sent.folder) {
    out["bytes"] = sent.bytes;
    out["resumed_bytes"] = sent.resumed;
    out["sha256"] = sent.sha256;
  } else if (sent.missing > 0) {
    out["not_sent"] = sent.missing;
  }
  return out;
}

}  // namespace

Exit Verdict::whole() const {
  if (exit != Exit::ok) return exit;
  const auto found =
      std::ranges::find_if(sent, [](const Sent& one) { return one.exit != Exit::ok; });
  return found == sent.end() ? Exit::ok : found->exit;
}

size_t Verdict::failures() const {
  const auto failed =
      std::ranges::count_if(sent, [](const Sent& one) { return one.exit != Exit::ok; });
  return static_cast<size_t>(failed) + items - sent.size();
}

Verdict deliver(const Options& options, std::span<const Item> items, const std::string& host,
                const Voice& voice) {
  Verdict verdict{.host = host, .sent = {}, .items = items.size()};
  const auto began = Clock::now();
  try {
    Delivery(options, items, voice, verdict).run();
  } catch (const Failure& failure) {
    verdict.exit = failure.exit();
    verdict.error = failure.what();
  }
  verdict.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return verdict;
}

std::string summary(const Verdict& verdict) {
  uint64_t bytes = 0;
  size_t files = 0, same = 0;
  for (const Sent& one : verdict.sent) {
    if (one.folder || one.exit != Exit::ok) continue;
    ++files;
    same += one.result == Sent::Result::same;
    if (one.result == Sent::Result::sent) bytes += one.bytes - one.resumed;
  }
  const size_t failures = verdict.failures();
  const std::string whole =
      failures == 0 ? "complete"
                    : fmt::format("NOT COMPLETE, {} of {} files and folders {} not there", failures,
                                  verdict.items, failures == 1 ? "is" : "are");
  return fmt::format(
      "{}: {}; {} the same SHA-256 at both ends ({} there before), {} sent in {:.1f} s",
      verdict.host, whole, files == 1 ? "1 file has" : fmt::format("{} files have", files),
      same == 1 ? "1 was" : fmt::format("{} were", same), bytes_text(static_cast<double>(bytes)),
      verdict.seconds);
}

nlohmann::json to_json(std::span<const Verdict> verdicts, Exit exit) {
  nlohmann::json receivers = nlohmann::json::array();
  for (const Verdict& verdict : verdicts) {
    nlohmann::json files = nlohmann::json::array();
    for (const Sent& sent : verdict.sent) files.push_back(to_json(sent));
    nlohmann::json one = {
        {"host", verdict.host},           {"exit", static_cast<int>(verdict.whole())},
        {"seconds", verdict.seconds},     {"items", verdict.items},
        {"failures", verdict.failures()}, {"sent", std::move(files)}};
    if (verdict.exit != Exit::ok) one["error"] = verdict.error;
    receivers.push_back(std::move(one));
  }
  return {{"program", "urma_notify"},
          {"version", library_version()},
          {"schema", 1},
          {"exit", static_cast<int>(exit)},
          {"receivers", std::move(receivers)}};
}

}  // namespace urma::apps::notify
