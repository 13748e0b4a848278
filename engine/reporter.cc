// SPDX-License-Identifier: Apache-2.0
#include "engine/reporter.h"

#include "engine/device_counters.h"
#include "engine/engine.h"

namespace urma::engine {
namespace {

constexpr size_t figures_of_path = 3;
constexpr size_t most_figures = drivers::PacketPort::most_metrics + figures_of_path * most_paths;

// The values of `device_metrics`, in its order.
std::array<uint64_t, most_figures> figures_of(const Snapshot& now, drivers::PacketPort& port) {
  std::array<uint64_t, most_figures> out;
  size_t at = port.metrics(std::span(out).first<drivers::PacketPort::most_metrics>());
  for (const transport::PathTotals& path : now.paths) {
    out[at++] = path.sent;
    out[at++] = path.lost;
    out[at++] = static_cast<uint64_t>(path.rtt.count());
  }
  return out;
}

}  // namespace

std::vector<ObservedMetric> device_metrics(const drivers::PortFacts& facts) {
  const std::vector<Endpoint>& paths = facts.paths;
  std::vector<ObservedMetric> out = facts.metrics;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string path = "path" + std::to_string(i);
    const std::string at = " over the path from " + to_string(paths[i]) + ".";
    const auto add = [&](const char* what, const char* unit, Metric::Window window,
                         std::string meaning) {
      out.push_back({.name = path + what,
                     .unit = unit,
                     .window = std::string(name(window)),
                     .part = "paths",
                     .meaning = std::move(meaning)});
    };
    add("_sent", "packets", Metric::Window::since_open, "Data sent" + at);
    add("_lost", "packets", Metric::Window::since_open, "Believed lost" + at);
    add("_rtt", "ns", Metric::Window::now, "Round trip of the last probe" + at);
  }
  return out;
}

Result<void> Reporter::start(const std::string& description) {
  return log_ == nullptr ? Result<void>{} : log_->start(description);
}

bool Reporter::report(Engine& engine, Time machine) {
  const Snapshot now = snapshot_of(engine);
  if (page_) {
    const transport::Medium::Viewed seen = engine.transport().view(views_);
    page_->write(now.counts, machine, figures_of(now, engine.port()));
    page_->write_channels(std::span(views_).first(seen.views),
                          engine.transport().counts().channels - seen.channels);
    view_objects(engine, objects_);
    page_->write_objects(objects_);
  }
  return log_ == nullptr || log_->offer(now);
}

void Reporter::close(const Snapshot& last) {
  page_.reset();
  if (log_ != nullptr) log_->finish(last);
}

void Reporter::abandon() {
  if (page_) page_->abandon();
  if (log_ != nullptr) log_->abandon();
}

}  // namespace urma::engine
