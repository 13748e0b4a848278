// SPDX-License-Identifier: Apache-2.0
#include "base/own_threads.h"

#include <fcntl.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "base/above_standard.h"

namespace urma {
namespace {

// The system gives the number of a thread that has ended to another one, which starts later.
struct Known {
  pid_t thread = 0;
  unsigned long long started = 0;  // in ticks since the machine started
};

// Never destroyed: threads may end after static objects. The mutex is held during fork().
struct OwnThreads {
  std::mutex mutex;
  std::vector<Known> threads;

  OwnThreads();
};

OwnThreads& own_threads() {
  static auto* const one = new OwnThreads;
  return *one;
}

OwnThreads::OwnThreads() {
  pthread_atfork([] { own_threads().mutex.lock(); }, [] { own_threads().mutex.unlock(); },
                 [] {
                   own_threads().threads.clear();
                   own_threads().mutex.unlock();
                 });
}

// Returns when a thread started, or 0 if there is no such thread.
unsigned long long start_of(pid_t thread) {
  std::array<char, 64> path;
  std::array<char, 512> text;
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", thread);
  const int descriptor = above_standard(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (descriptor < 0) return 0;
  ssize_t got = 0;
  do got = ::read(descriptor, text.data(), text.size() - 1);
  while (got < 0 && errno == EINTR);
  ::close(descriptor);
  if (got <= 0) return 0;
  text[static_cast<size_t>(got)] = 0;
  // The name, in parentheses, may contain anything. The start is the 20th field behind it.
  const char* field = std::strrchr(text.data(), ')');
  for (int i = 0; field != nullptr && i < 20; ++i) field = std::strchr(field + 1, ' ');
  return field == nullptr ? 0 : std::strtoull(field, nullptr, 10);
}

// Records the calling thread.
void note() {
  const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
  const unsigned long long started = start_of(self);
  OwnThreads& all = own_threads();
  const std::lock_guard held(all.mutex);
  std::erase_if(all.threads, [](const Known& one) { return start_of(one.thread) != one.started; });
  try {
    all.threads.push_back({self, started});
  } catch (const std::bad_alloc&) {  // it counts as a thread of the program
  }
}

// A new thread gets this from the one that starts it, which waits until `noted`.
struct Start {
  void* (*entry)(void*);
  void* argument;
  sem_t noted;
};

void* begin(void* given) {
  auto* const start = static_cast<Start*>(given);
  const auto entry = start->entry;
  void* const argument = start->argument;
  note();
  sem_post(&start->noted);
  return entry(argument);
}

}  // namespace

bool is_own_thread(pid_t thread) {
  OwnThreads& all = own_threads();
  const std::lock_guard held(all.mutex);
  const auto found =
      std::ranges::find_if(all.threads, [&](const Known& one) { return one.thread == thread; });
  return found != all.threads.end() && found->started == start_of(thread);
}

int start_own_thread(pthread_t& out, const char* name, void* (*entry)(void*), void* argument) {
  Start start{.entry = entry, .argument = argument, .noted = {}};
  sem_init(&start.noted, 0, 0);
  int why = 0;
  {
    const SignalsBlocked blocked;
    why = pthread_create(&out, nullptr, begin, &start);
  }
  if (why == 0) {
    pthread_setname_np(out, name);
    while (sem_wait(&start.noted) != 0) {
    }
  }
  sem_destroy(&start.noted);
  return why;
}

}  // namespace urma
