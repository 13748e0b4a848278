// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.h"

#include "base/clock.h"
#include "engine/device_counters.h"

namespace urma::engine {
namespace {

constexpr Duration goodbye_limit = std::chrono::milliseconds(200);

}  // namespace

Runner::Runner(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings,
               Threads threads, std::unique_ptr<Entropy> entropy)
    : fork_mark_(settings.profile),
      threads_(threads),
      port_facts_(port->facts()),
      clock_(port->clock()),
      engine_(std::move(port), settings, std::move(entropy)),
      ports_(engine_.descriptors().begin(), engine_.descriptors().end()),
      self_(engine_.transport().know(port_facts_.eid, port_facts_.self, settings.life)),
      profiler_(settings.profile ? std::make_unique<Profiler>() : nullptr),
      waker_(engine_.port(), clock_, *this),
      keeper_(threads, waker_),
      passes_(engine_, waker_, clock_, inlined()),
      descriptors_(engine_, passes_, waker_, keeper_),
      service_(passes_, waker_, keeper_, descriptors_),
      waiting_(passes_, keeper_, descriptors_, state_),
      calls_(engine_, passes_, waker_, clock_),
      paths_(engine_, calls_, port_facts_, clock_, *this) {
  if (profiler_ != nullptr) passes_.time_stages(profiler_->passes());
}

Result<void> Runner::start() {
  if (auto started = waker_.start(); !started) return started;
  if (Reporter* const reporter = passes_.reporter()) {
    if (auto started = reporter->start(port_facts_.description); !started) return started;
  }
  return has_service() ? service_.start() : Result<void>{};
}

Runner::~Runner() {
  // In a forked child the thread and the peers belong to the parent; only the child's copies are
  // freed.
  if (here()) {
    close();
    if (clock_ != nullptr) clock_->detach(*this);
  } else if (passes_.reporter() != nullptr) {
    passes_.reporter()->abandon();
  }
  LazyBlock::tidy();
}

void Runner::close() {
  if (!state_.begin()) return state_.await();
  call([](Engine& engine, Time now) { return engine.end_everything(now); });
  take_leave();
  if (passes_.reporter() != nullptr) end_reports();
  service_.stop();
  state_.end();
  if (engine_.events().descriptor() >= 0) engine_.events().ring();
  awaited_.ring();
}

// Answers and acknowledgements are sent before the peers are notified.
void Runner::take_leave() {
  bool closing = false;
  Time give_up{};
  call([&](Engine& engine, Time now) {
    transport::Transport& transport = engine.transport();
    if (give_up == Time{}) give_up = now + goodbye_limit;
    if (!closing && (transport.idle() || now >= give_up)) {
      transport.close(now);
      closing = true;
    }
    engine.events().hand_over(now);
    return closing && (transport.closed() || now >= give_up);
  });
}

void Runner::end_reports() {
  Snapshot last;
  call([&](Engine& engine, Time) {
    last = snapshot_of(engine);
    passes_.end_reports();
    return true;
  });
  passes_.reporter()->close(last);
}

// In a simulation the clock runs the passes that the service thread would run. For an inlined
// engine the application's polls run them.
Time Runner::pass(Time) {
  if (inlined() || passes_.try_pass(nullptr) == Passes::Ran::by_another) return never;
  return passes_.alarm();
}

void Runner::look(const jetty::Jfc& jfc) {
  keeper_.polled_empty();
  // When a device begins to close, polls run the passes that end the works that were posted just
  // before.
  const bool runs = polled_here() || !open();
  if ((runs && passes_.try_pass(&jfc) == Passes::Ran::busy) || simulated()) return;
  // The service thread of a served device competes with each thread that polls, and so do peers on
  // this host, which poll as well, if the port wakes no thread.
  if (!runs || waker_.port_is_polled() || pollers_.several()) Pollers::give_way();
}

void Runner::wait(jetty::Jfc& jfc, Duration limit) {
  if (jfc.ready()) return;
  const Time now = simulated() ? clock_->now() : read_clock();
  const Time until = limit > never - now ? never : now + limit;
  if (simulated()) return waiting_.simulate(jfc, until, *clock_, inlined());
  if (polled_here()) return waiting_.run_passes(jfc, until, has_service());
  waiting_.be_served(jfc, until);
}

}  // namespace urma::engine
