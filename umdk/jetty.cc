// SPDX-License-Identifier: Apache-2.0
#include "umdk/jetty.h"

#include "umdk/group.h"
#include "umdk/handle.h"
#include "umdk/jfr.h"

namespace urma::umdk {
namespace {

template <class Object>
void begin(Object& object, Context& context) {
  object.urma_ctx = &context;
  pthread_mutex_init(&object.event_mutex, nullptr);
  pthread_cond_init(&object.event_cond, nullptr);
  context.hold();
}

template <class Object>
void end(Object& object) {
  if (object.active()) object.deactivate();
  object.context().let_go();
  pthread_cond_destroy(&object.event_cond);
  pthread_mutex_destroy(&object.event_mutex);
}

}  // namespace

Jfs::Jfs(Context& context, const urma_jfs_cfg_t& cfg) : urma_jfs_t{} {
  jfs_cfg = cfg;
  begin(*this, context);
}

Jfs::~Jfs() { end(*this); }

Result<void> Jfs::activate() {
  sender.emplace(
      context(),
      Sender::Options{.jfs = jfs_cfg,
                      .object = reinterpret_cast<uintptr_t>(static_cast<urma_jfs_t*>(this))});
  if (auto made = sender->activate(); !made) {
    sender.reset();
    return made;
  }
  jfs_id = context().id_of(sender->id());
  urma_jfs_opt.is_actived = true;
  return {};
}

void Jfs::deactivate() {
  sender->deactivate();
  sender.reset();
  urma_jfs_opt.is_actived = false;
}

Jetty::Jetty(Context& context, const urma_jetty_cfg_t& cfg) : urma_jetty_t{} {
  jetty_cfg = cfg;
  begin(*this, context);
}

Jetty::~Jetty() { end(*this); }

Result<void> Jetty::activate() {
  sender.emplace(
      context(),
      Sender::Options{.jfs = jetty_cfg.jfs_cfg,
                      .receives = find<Jfr>(jetty_cfg.shared.jfr),
                      .id = jetty_cfg.id,
                      .object = reinterpret_cast<uintptr_t>(static_cast<urma_jetty_t*>(this))});
  if (auto made = sender->activate(); !made) {
    sender.reset();
    return made;
  }
  if (Group* const group = find<Group>(jetty_cfg.jetty_grp)) {
    if (auto added = group->add(*this); !added) {
      sender->deactivate();
      sender.reset();
      return added;
    }
  }
  jetty_id = context().id_of(sender->id());
  urma_jetty_opt.is_actived = true;
  return {};
}

void Jetty::deactivate() {
  if (Group* const group = find<Group>(jetty_cfg.jetty_grp)) group->remove(*this);
  sender->deactivate();
  sender.reset();
  urma_jetty_opt.is_actived = false;
}

}  // namespace urma::umdk
