#include "api/handles.h"
#include "api/look_up.h"
#include "base/failed.h"
#include "engine/copy_choice.h"
#include "engine/engine_places.h"
#include "engine/retransmission_choice.h"

namespace urma {
namespace {

// Returns the descriptor line that is published at `what`, a urma:// location.
Result<std::string> locate(engine::Runner& runner, const std::string& device, std::string_view what,
                           const ImportOptions& options) {
  const Endpoint& self = runner.port_facts().self;
  Result<Location> where = parse_location(what, self);
  if (!where) return where.error();
  if (!where->local_host && !may_reach(self.address, where->at.address)) {
    return out_of_reach(where->at, self);
  }
  return look_up(runner, device, *where, options);
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

}  // namespace

Result<Imported> Device::import(std::string_view what, const ImportOptions& options) {
  return guarded("import", [&]() -> Result<Imported> {
    if (auto able = usable(state_, "import"); !able) return able.error();
    engine::Runner& runner = *state_->runner;
    if (options.limit < Duration{}) {
      return Error{Status::invalid_argument,
                   "import: ImportOptions::limit is negative. Fix: give the time to wait for a "
                   "name, or 0s to look once"};
    }
    const std::optional<Retransmission>& mode = options.retransmission;
    if (const std::string why = mode ? engine::objection(*mode, runner.port_facts()) : "";
        !why.empty()) {
      return Error{Status::invalid_argument,
                   "import: retransmission " + std::string(name(*mode)) + ": " + why};
    }
    if (!is_location(what)) return import_line(runner, std::string(what), mode);
    const Result<std::string> found = locate(runner, state_->reach, what, options);
    if (!found) return found.error();
    return import_line(runner, *found, mode);
  });
}

}  // namespace urma
