// SPDX-License-Identifier: Apache-2.0
#include "engine/object_view.h"

#include <algorithm>
#include <span>

#include "engine/engine.h"

namespace urma::engine {
namespace {

// The objects in higher places are counted, but not looked at.
constexpr uint32_t most_places = 4096;

// A JFC has no number. This one stays the same while the JFC exists, and hardly two JFCs of a
// device have the same.
uint32_t number_of_jfc(const jetty::Jfc& jfc) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&jfc) / sizeof(jetty::Jfc) % id_limit);
}

ObjectKind kind_of_jetty(const jetty::Jetty& jetty) {
  const bool sends = jetty.queues->jfs().count() > 0;
  const bool receives = jetty.receives_from || jetty.queues->jfr().count() > 0;
  if (sends) return receives ? ObjectKind::jetty : ObjectKind::jfs;
  return receives ? ObjectKind::jfr : ObjectKind::group;
}

void note_jfc(const jetty::Jfc& jfc, ObjectViews& out, std::span<const jetty::Jfc*> seen,
              uint32_t& jfcs) {
  const auto known = seen.first(jfcs);
  if (std::find(known.begin(), known.end(), &jfc) != known.end()) return;
  if (jfcs == seen.size()) {
    out.more_jfcs = true;
  } else {
    seen[jfcs++] = &jfc;
  }
}

ObjectView view_of_jetty(jetty::Transactions& all, jetty::Jetty& jetty) {
  jetty::Jetties& jetties = all.jetties();
  jetty::Queues& queues = *jetty.queues;
  ObjectView view{.kind = kind_of_jetty(jetty),
                  .state = static_cast<uint8_t>(jetty.state),
                  .weight = jetty.ordering.weight,
                  .how = static_cast<uint8_t>(jetty.ordering.mode),
                  .id = number(jetty.id),
                  .sends = queues.jfs().count(),
                  .receives = queues.jfr().count(),
                  .jfc = number_of_jfc(queues.jfc()),
                  .outstanding = jetty.outstanding,
                  .urgent = jetty.ordering.urgent};
  if (const auto* const group = all.groups().find(JettyId(number(jetty.id) | group_bit))) {
    const auto members = std::span(group->members).first(group->count);
    view.receives = static_cast<uint32_t>(std::ranges::count_if(
        members, [&](Handle member) { return jetties.find(member) != nullptr; }));
    view.jfc = 0;
  }
  if (view.kind != ObjectKind::jetty) return view;
  view.receives_jfc = view.jfc;
  if (!jetty.receives_from) return view;
  jetty::Jetty* const shared = jetties.receiver(jetty);
  view.receives_jfc = shared == nullptr ? ObjectView::none : number_of_jfc(shared->queues->jfc());
  if (shared != nullptr) view.jfr = number(shared->id);
  return view;
}

}  // namespace

void view_objects(Engine& engine, ObjectViews& out) {
  jetty::Jetties& jetties = engine.transactions().jetties();
  std::array<const jetty::Jfc*, ObjectViews::most_jfcs> seen;
  uint32_t jfcs = 0;
  uint32_t own = 0;  // Jetties of the device itself
  out.count = 0;
  out.more_jfcs = false;
  jetties.for_each_below(most_places, [&](jetty::Jetty& jetty) {
    if (jetty.id < first_user_jetty) {
      ++own;
    } else if (out.count < ObjectViews::most_jetties) {
      const ObjectView& view = out.views[out.count++] = view_of_jetty(engine.transactions(), jetty);
      if (view.kind != ObjectKind::group) note_jfc(jetty.queues->jfc(), out, seen, jfcs);
    }
  });
  out.more_jetties = jetties.size() - own - out.count;
  for (uint32_t i = 0; i < jfcs; ++i) {
    out.views[out.count++] = {
        .kind = ObjectKind::jfc, .id = number_of_jfc(*seen[i]), .receives = seen[i]->depth()};
  }
  uint32_t segments = 0;
  engine.segments().for_each_below(
      most_places, [&](const memseg::SegmentTable::Segment& segment, TokenId id) {
        if (segments == ObjectViews::most_segments) return;
        ++segments;
        out.views[out.count++] = {.kind = ObjectKind::segment,
                                  .how = static_cast<uint8_t>(segment.rights),
                                  .id = number(id),
                                  .address = segment.address,
                                  .bytes = segment.bytes};
      });
  const uint32_t all = engine.segments().size();
  out.more_segments = all - std::min(all, segments);
}

}  // namespace urma::engine
