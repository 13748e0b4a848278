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

// Of this process. Held by whoever forks, so that the child finds it whole.
struct Registry {
  std::mutex mutex;
  std::vector<int> descriptors;
  int idle = -1;  // what a child finds in their places

  Registry();
};

// Never destroyed: devices may be closed by destructors of static objects.
Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

// In the child, with the mutex of its parent. Only calls that a signal handler may make.
void replace_all(Registry& all) {
  for (const int descriptor : all.descriptors) {
    if (all.idle >= 0) dup3(all.idle, descriptor, O_CLOEXEC);
  }
  // From here on they are nobody's, and the child may close and open what it likes.
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
  // Not there any more in a child.
  const auto found = std::find(all.descriptors.begin(), all.descriptors.end(), descriptor_);
  if (found != all.descriptors.end()) all.descriptors.erase(found);
}

}  // namespace urma
