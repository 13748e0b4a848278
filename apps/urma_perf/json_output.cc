#include "apps/urma_perf/json_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/common/failure.h"
#include "apps/common/output.h"

namespace urma::apps::perf {

using nlohmann::json;

namespace {

json round_json(const Result& result, const Round& round) {
  json out = {
      {"seconds", round.seconds},
      {"messages", round.messages},
      {"p50_us", round.p50_us},
      {"messages_per_second", round.messages_per_second},
      {"bytes_per_second", round.messages_per_second * static_cast<double>(result.what.bytes)},
      {"run_queue_wait_percent", round.waited_percent}};
  if (round.limit != 0) {
    out["limit"] = round.limit;
    out["times_limit"] = round.times_limit;
  }
  return out;
}

json rows_json(const std::vector<StageRow>& rows, uint64_t works) {
  json out = json::array();
  for (const StageRow& row : rows) {
    out.push_back({{"stage", row.stage},
                   {"times", row.times},
                   {"total_ns", row.total_ns},
                   {"ns_per_work", row.total_ns / static_cast<double>(works)},
                   {"share", row.share}});
  }
  return out;
}

json profile_json(const Result& result) {
  json out = {{"works", result.messages()}};
  for (const auto& [name, side] : {std::pair("client", &result.profiles.client),
                                   std::pair("server", &result.profiles.server)}) {
    if (!*side) continue;
    const SideProfile& profile = **side;
    const StageRows rows = rows_of(profile);
    out[name] = {{"seconds", profile.seconds},
                 {"threads", profile.threads},
                 {"cost_ns", profile.cost_ns},
                 {"calls", rows_json(rows.calls, result.messages())},
                 {"device", rows_json(rows.device, result.messages())}};
  }
  return out;
}

}  // namespace

json to_json(const Result& result) {
  const Case& what = result.what;
  json out = {{"test", what.test->name},
              {"device", result.device},
              {"size_bytes", what.bytes},
              {"depth", what.depth},
              {"jetties", what.jetties},
              {"signal_every", what.signal_every},
              {"order", what.ordering.order->name},
              {"mode", what.ordering.mode->name},
              {"lost_percent", result.lost_percent()},
              {"atomic", what.test->atomics() ? what.atomic->name : ""},
              {"fence_every", what.ordering.fence_every},
              {"threads_mode", result.threads_mode},
              {"verified", what.verify},
              {"mapped", result.mapped},
              {"spread_bytes", what.spread},
              {"past_caches", result.mapped && result.what.bytes >= result.past_caches_from},
              {"messages", result.times.count()},
              {"p50_us", result.us(0.5)},
              {"p90_us", result.us(0.9)},
              {"p99_us", result.us(0.99)},
              {"p99_9_us", result.us(0.999)},
              {"p99_99_us", result.us(0.9999)},
              {"max_us", result.max_us()},
              {"mean_us", result.mean_us()},
              {"deviation_us", result.deviation_us()},
              {"messages_per_second", result.messages_per_second()},
              {"bytes_per_second", result.bytes_per_second()},
              {"wrong", result.verdict.wrong},
              {"run_queue_wait_percent", result.waited_percent()},
              {"discarded_rounds", result.discarded()},
              {"counters", result.counters},
              {"rounds", json::array()}};
  if (what.test->lane) out["calls_per_group"] = calls_per_group(what);
  for (const PathUse& one : result.paths) {
    out["paths"].push_back({{"from", to_string(one.path.from)},
                            {"to", to_string(one.path.to)},
                            {"usable", one.path.usable},
                            {"share", one.share},
                            {"loss", one.loss},
                            {"rtt_us", static_cast<double>(one.path.rtt.count()) / 1000}});
  }
  for (const Round& round : result.rounds) out["rounds"].push_back(round_json(result, round));
  if (result.profiles.client) out["profile"] = profile_json(result);
  if (result.verdict.wrong > 0) out["first_wrong"] = result.verdict.first;
  if (const auto limit = result.limit()) {
    out["limit"] = *limit;
    out["limit_unit"] = result.limit_unit();
    out["limit_pattern"] = result.limit_pattern;
    out["limit_of_clean_network"] = result.limit_of_clean_network;
    out["times_limit"] = result.times_limit();
    out["times_limit_least"] = result.least_times_limit();
    out["times_limit_most"] = result.most_times_limit();
  }
  return out;
}

JsonFile::JsonFile(std::string path) : path_(std::move(path)) {
  struct stat found {};
  const bool special = stat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
  if (special) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporary_ = fmt::format("{}.{}.part", path_, getpid());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    throw failure("cannot be written");
  }
}

JsonFile::~JsonFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Failure JsonFile::failure(const char* doing) const {
  return {Exit::error, fmt::format("--json-file {}: {}: {}. Fix: free some space there, or name "
                                   "another file in a directory that you may write to",
                                   path_, doing, std::strerror(errno))};
}

void JsonFile::write(const json& whole) {
  if (!write_all(descriptor_, whole.dump(2) + "\n")) throw failure("writing it");
  if (temporary_.empty()) return;
  // An error of a full disk appears here at the latest, and not after the rename.
  if (fsync(descriptor_) != 0) throw failure("writing it");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) throw failure("renaming it");
  temporary_.clear();
}

}  // namespace urma::apps::perf
