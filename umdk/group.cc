// SPDX-License-Identifier: Apache-2.0
#include "umdk/group.h"

#include <algorithm>

#include "umdk/jetty.h"

namespace urma::umdk {
namespace {

// The mutex of a public struct, for std::lock_guard.
struct ListLock {
  pthread_mutex_t& mutex;
  explicit ListLock(pthread_mutex_t& of) : mutex(of) { pthread_mutex_lock(&mutex); }
  ~ListLock() { pthread_mutex_unlock(&mutex); }
  ListLock(const ListLock&) = delete;
};

}  // namespace

Group::Group(Context& context, const urma_jetty_grp_cfg_t& config, JettyGroup made)
    : urma_jetty_grp_t{}, group_(std::move(made)) {
  urma_ctx = &context;
  cfg = config;
  jetty_grp_id = context.id_of(without_group_bit(group_->id()));
  jetty_list = list_.data();
  pthread_mutex_init(&list_mutex, nullptr);
  pthread_mutex_init(&event_mutex, nullptr);
  pthread_cond_init(&event_cond, nullptr);
  context.hold();
}

Group::~Group() {
  {
    const std::lock_guard held(context().numbers());
    group_.reset();
    context().let_go_of(JettyId(jetty_grp_id.id));
  }
  context().let_go();
  pthread_cond_destroy(&event_cond);
  pthread_mutex_destroy(&event_mutex);
  pthread_mutex_destroy(&list_mutex);
}

Result<void> Group::add(Jetty& jetty) {
  const ListLock held(list_mutex);
  if (auto added = group_->add(jetty.sender->queue()); !added) return added;
  list_[jetty_cnt++] = &jetty;
  return {};
}

void Group::remove(Jetty& jetty) {
  const ListLock held(list_mutex);
  urma_jetty_t** const end = list_.data() + jetty_cnt;
  urma_jetty_t** const found = std::find(list_.data(), end, &jetty);
  if (found == end) return;
  // If the device is closed, nothing is received any more.
  static_cast<void>(group_->remove(jetty.sender->queue()));
  std::copy(found + 1, end, found);
  list_[--jetty_cnt] = nullptr;
}

uint32_t Group::count() {
  const ListLock held(list_mutex);
  return jetty_cnt;
}

}  // namespace urma::umdk
