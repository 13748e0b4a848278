// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include "api/handles.h"
#include "api/look_up.h"
#include "base/failed.h"
#include "base/timer_descriptor.h"
#include "engine/copy_choice.h"
#include "engine/engine_places.h"
#include "engine/retransmission_choice.h"

namespace urma {
namespace {

// Makes the search for what is published at `what`, a urma:// location. `device`: the device string
// by which processes of this host reach this device.
Result<std::unique_ptr<LookUp>> search(const std::shared_ptr<engine::Runner>& runner,
                                       const std::string& device, std::string_view what,
                                       const ImportOptions& options) {
  const Endpoint& self = runner->port_facts().self;
  Result<Location> where = parse_location(what, self);
  if (!where) return where.error();
  if (!where->local_host && !may_reach(self.address, where->at.address)) {
    return out_of_reach(where->at, self);
  }
  return std::make_unique<LookUp>(runner, device, std::move(*where), options);
}

Imported imported_from(const Descriptor& descriptor, PeerId peer) {
  Imported imported;
  if (const auto& segment = descriptor.segment) {
    imported.segment = {.peer = peer,
                        .address = segment->address,
                        .bytes = segment->bytes,
                        .token_id = segment->id,
                        .token = segment->token,
                        .rights = segment->rights,
                        .atomics = segment->atomics};
  }
  if (const auto& jetty = descriptor.jetty) {
    imported.jetty = {.peer = peer, .id = jetty->id, .token = jetty->token};
  }
  return imported;
}

// Measures how to copy large works, if the segment is large enough for them.
void choose_copy(engine::Engines& engines, const RemoteSegment& segment) {
  if (!segment.mapped() || segment.bytes < engine::least_past_caches) return;
  const uint64_t from = engine::past_caches_from();
  for (uint32_t i = 0; i < engines.count(); ++i) {
    engines.at(i).call([&](engine::Engine& engine, Time) {
      engine.transactions().initiator().copier().copy_past_caches_from(from);
      return true;
    });
  }
}

Result<Imported> import_line(engine::Runner& runner, const std::string& line,
                             const std::optional<Retransmission>& mode) {
  Result<Descriptor> descriptor = parse_descriptor(line);
  if (!descriptor) return descriptor.error();
  const Endpoint& self = runner.port_facts().self;
  if (!may_reach(self.address, descriptor->at.address)) return out_of_reach(descriptor->at, self);
  if (descriptor->jetty) {
    const Endpoint place = engine::place_of_jetty(*descriptor);
    if (!may_reach(self.address, place.address)) return out_of_reach(place, self);
  }
  if (const PeerId peer = runner.engines().peers().know(*descriptor, mode)) {
    Imported imported = imported_from(*descriptor, peer);
    if (mode) imported.warning = engine::warning(*mode, runner.port_facts());
    choose_copy(runner.engines(), imported.segment);
    return imported;
  }
  return Error{Status::no_resources,
               "import: this device knows as many peers as Limits::peers allows. Fix: open the "
               "device with a larger Limits::peers"};
}

Result<void> check(const engine::Runner& runner, const ImportOptions& options) {
  if (options.limit < Duration{}) {
    return Error{Status::invalid_argument,
                 "import: ImportOptions::limit is negative. Fix: give the time to wait for a "
                 "name, or 0s to look once"};
  }
  const auto& mode = options.retransmission;
  const std::string why = mode ? engine::objection(*mode, runner.port_facts()) : "";
  if (why.empty()) return {};
  return Error{Status::invalid_argument,
               "import: retransmission " + std::string(name(*mode)) + ": " + why};
}

}  // namespace

Result<Imported> Device::import(std::string_view what, const ImportOptions& options) {
  return guarded("import", [&]() -> Result<Imported> {
    if (auto able = usable(state_, "import"); !able) return able.error();
    engine::Runner& runner = *state_->runner;
    if (auto valid = check(runner, options); !valid) return valid.error();
    if (!is_location(what)) return import_line(runner, std::string(what), options.retransmission);
    const auto found = search(state_->runner, state_->reach, what, options);
    if (!found) return found.error();
    const Result<std::string> line = (*found)->finish();
    if (!line) return line.error();
    return import_line(runner, *line, options.retransmission);
  });
}

// ---- imports in steps

struct URMA_LOCAL Import::State {
  std::shared_ptr<engine::Runner> runner;
  std::optional<Retransmission> mode;
  TimerDescriptor timer;            // outlives the search, which sets it
  std::unique_ptr<LookUp> look_up;  // null if the result is known
  std::optional<Result<Imported>> result;

  void end(Result<Imported> how) {
    result = std::move(how);
    look_up.reset();
    timer.set(never);
  }
};

Import::Import(std::unique_ptr<State> state) : state_(std::move(state)) {}
Import::Import(Import&&) noexcept = default;
Import& Import::operator=(Import&&) noexcept = default;
Import::~Import() = default;

Result<Import> Device::start_import(std::string_view what, const ImportOptions& options) {
  return guarded("start_import", [&]() -> Result<Import> {
    if (auto able = usable(state_, "start_import"); !able) return able.error();
    engine::Runner& runner = *state_->runner;
    if (auto valid = check(runner, options); !valid) return valid.error();
    auto state = std::make_unique<Import::State>();
    state->runner = state_->runner;
    state->mode = options.retransmission;
    if (!runner.simulated() && !state->timer.make()) {
      return failed(Status::no_resources,
                    "start_import: cannot make a timerfd: ", std::strerror(errno))
          .fix("close descriptors, or allow more (ulimit -n)");
    }
    // The first call of poll is due now.
    TimerDescriptor::ring(state->timer.number());
    if (!is_location(what)) {
      auto imported = import_line(runner, std::string(what), state->mode);
      if (!imported) return imported.error();
      state->result = std::move(imported);
      return Import(std::move(state));
    }
    auto found = search(state_->runner, state_->reach, what, options);
    if (!found) return found.error();
    state->look_up = std::move(*found);
    return Import(std::move(state));
  });
}

std::optional<Result<Imported>> Import::poll() {
  if (auto able = usable(state_, "poll"); !able) return able.error();
  if (state_->result) {
    state_->timer.set(never);
    return state_->result;
  }
  auto ended = guarded("import", [&]() -> std::optional<Result<Imported>> {
    const auto line = state_->look_up->step(state_->timer);
    if (!line) return {};
    if (!*line) return line->error();
    return import_line(*state_->runner, **line, state_->mode);
  });
  if (ended) state_->end(*ended);
  return ended;
}

Result<int> Import::fd() const {
  if (!state_) return moved_from("fd");
  // The descriptor is returned also after close, so that applications can remove it from an epoll
  // set.
  if (state_->runner->here() && state_->timer.number() >= 0) return state_->timer.number();
  if (auto able = usable(state_, "fd"); !able) return able.error();
  return guarded("fd", [&]() -> Result<int> {
    return Error{Status::unsupported,
                 "fd: this device is simulated, and its time stands still while a thread sleeps. "
                 "Fix: call poll() instead"};
  });
}

}  // namespace urma
