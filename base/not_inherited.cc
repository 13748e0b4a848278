// SPDX-License-Identifier: Apache-2.0
#include "base/not_inherited.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/above_standard.h"

namespace urma {
namespace {

// The descriptors of this process that children must not have. Its mutex is held during fork, so
// that the child finds it consistent.
struct Registry {
  std::mutex mutex;
  std::vector<int> descriptors;
  int idle = -1;  // the descriptor that replaces them in a child

  Registry();
};

// Never destroyed: devices may be closed by destructors of static objects.
Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

// Runs in the child, which holds the mutex that its parent locked. Only calls functions that a
// signal handler may call.
void replace_all(Registry& all) {
  for (const int descriptor : all.descriptors) {
    if (all.idle >= 0) dup3(all.idle, descriptor, O_CLOEXEC);
  }
  // From here on the child may close and open these descriptors as it likes.
  all.descriptors.clear();
  if (all.idle >= 0) close(std::exchange(all.idle, -1));
}

Registry::Registry() {
  pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                 [] {
                   replace_all(registry());
                   registry().mutex.unlock();
                 });
}

}  // namespace

NotInherited::NotInherited(int descriptor) {
  if (descriptor < 0) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.idle < 0) all.idle = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  all.descriptors.push_back(descriptor);
  descriptor_ = descriptor;
}

NotInherited::NotInherited(NotInherited&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

NotInherited& NotInherited::operator=(NotInherited&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

NotInherited::~NotInherited() {
  if (descriptor_ < 0) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  // In a child the list is empty.
  const auto found = std::find(all.descriptors.begin(), all.descriptors.end(), descriptor_);
  if (found != all.descriptors.end()) all.descriptors.erase(found);
}

}  // namespace urma
