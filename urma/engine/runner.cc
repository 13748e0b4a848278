#include "urma/engine/runner.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "urma/base/clock.h"

namespace urma::engine {
namespace {

// Going to sleep and waking costs some 25 us; something may come sooner.
constexpr Duration spin_before_sleep = std::chrono::microseconds(50);
// Commands that are not done are looked at again after this.
constexpr Duration command_patience = std::chrono::milliseconds(1);
constexpr Duration goodbye_limit = std::chrono::milliseconds(200);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A third spinning thread on two processors turns microseconds into scheduler slices.
bool may_spin() {
  static const bool many = std::thread::hardware_concurrency() >= 4;
  return many;
}

}  // namespace

Runner::Runner(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings,
               Threads threads, std::unique_ptr<Entropy> entropy)
    : fork_page_(4096),
      alive_(reinterpret_cast<std::atomic<uint32_t>*>(fork_page_.data())),
      threads_(threads),
      port_facts_(port->facts()),
      clock_(port->clock()),
      engine_(std::move(port), settings, std::move(entropy)),
      port_(engine_.descriptor()) {
  self_ = engine_.transport().know(port_facts_.eid, port_facts_.self, settings.life);
  madvise(fork_page_.data(), fork_page_.bytes(), MADV_WIPEONFORK);
  alive_->store(1);
  if (clock_ != nullptr) clock_->attach(*this, port_facts_.self);
}

Result<void> Runner::start() {
  wake_descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_descriptor_ < 0) {
    return error(Status::no_resources, std::string("making an eventfd: ") + std::strerror(errno));
  }
  if (threads_ != Threads::served || simulated()) return {};
  const auto entry = [](void* self) -> void* {
    static_cast<Runner*>(self)->serve();
    return nullptr;
  };
  if (const int why = pthread_create(&thread_, nullptr, entry, this); why != 0) {
    return error(Status::no_resources,
                 std::string("starting the engine's thread: ") + std::strerror(why));
  }
  pthread_setname_np(thread_, "urma-engine");
  running_ = true;
  return {};
}

Runner::~Runner() {
  if (here()) {
    close();
    if (clock_ != nullptr) clock_->detach(*this);
  }
  // In a child the thread and the peers are the parent's; only what was copied is given back.
  if (wake_descriptor_ >= 0) ::close(wake_descriptor_);
}

void Runner::close() {
  if (!open_.exchange(false)) return;
  call([](Engine& engine, Time now) { return engine.end_everything(now); });
  bool saying_goodbye = false;
  Time give_up{};
  call([&](Engine& engine, Time now) {
    transport::Transport& transport = engine.transport();
    if (give_up == Time{}) give_up = now + goodbye_limit;
    // What peers are owed goes first.
    if (!saying_goodbye && (transport.idle() || now >= give_up)) {
      transport.close(now);
      saying_goodbye = true;
    }
    return saying_goodbye && (transport.closed() || now >= give_up);
  });
  if (!running_) return;
  stop_.store(true);
  wake();
  pthread_join(thread_, nullptr);
  running_ = false;
}

// ---- passes

// With the token.
bool Runner::run_pass(bool polled) {
  const Time machine = clock_ != nullptr ? clock_->now() : Time(read_clock());
  const Time now = clock_ != nullptr ? machine : time_.advance(machine, next_deadline_);
  const bool busy = engine_.pass(now, polled);
  next_deadline_ = busy ? now : engine_.next_deadline();
  if (engine_.commands_wait()) next_deadline_ = std::min(next_deadline_, now + command_patience);
  return busy;
}

void Runner::try_pass(bool polled) {
  if (!take_token()) return;
  run_pass(polled);
  const bool kick = engine_.take_kick();
  drop_token();
  if (kick) wake();
}

Time Runner::pass(Time) {
  if (!take_token()) return never;
  run_pass(false);
  const Time next = next_deadline_;
  drop_token();
  return next;
}

// ---- sleeping

void Runner::wake() {
  if (simulated()) return clock_->poke(*this);
  // Read after the mark, which is a full fence: either the sleeper sees the work, or we see it.
  if (!asleep_.load(std::memory_order_relaxed) || !asleep_.exchange(false)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

// Without the token. `limit` in the machine's time.
void Runner::sleep(Time limit) {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!engine_.has_work() && !stop_.load()) {
    std::array<pollfd, 2> descriptors = {
        {{engine_.descriptor(), POLLIN, 0}, {wake_descriptor_, POLLIN, 0}}};
    timespec timeout{};
    const timespec* patience = nullptr;
    if (limit != never) {
      const Duration left = std::max(limit - read_clock(), Duration{});
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      timeout = {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
      patience = &timeout;
    }
    ppoll(descriptors.data(), descriptors.size(), patience, nullptr);
    if (descriptors[1].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_descriptor_, &count, sizeof count);
    }
  }
  asleep_.store(false, std::memory_order_relaxed);
}

void Runner::serve() {
  Time idle_since = never;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (!take_token()) {
      sched_yield();
      continue;
    }
    const bool busy = run_pass(false);
    engine_.take_kick();
    const Time limit = time_.to_machine(next_deadline_);
    drop_token();
    if (busy) {
      idle_since = never;
      continue;
    }
    if (may_spin()) {
      const Time now = read_clock();
      idle_since = std::min(idle_since, now);
      if (now - idle_since < spin_before_sleep) {
        pause();
        continue;
      }
    }
    sleep(limit);
  }
}

// ---- waiting for completions

void Runner::wait(jetty::Jfc& jfc, Duration limit) {
  if (jfc.ready()) return;
  if (simulated()) return wait_simulated(jfc, limit);
  const Time now = read_clock();
  const Time until = limit > never - now ? never : now + limit;
  if (inlined()) return wait_inlined(jfc, until);
  while (!jfc.ready()) {
    const Duration left = until == never ? Duration(std::chrono::hours(1)) : until - read_clock();
    if (left <= Duration{}) return;
    jfc.sleep(left);
  }
}

void Runner::wait_inlined(jetty::Jfc& jfc, Time until) {
  Time idle_since = never;
  while (!jfc.ready()) {
    if (read_clock() >= until) return;
    if (!take_token()) {
      // Whoever has it runs the engine for us, but may stop doing so.
      jfc.sleep(command_patience);
      continue;
    }
    const bool busy = run_pass(false);
    const bool kick = engine_.take_kick();
    const Time limit = std::min(time_.to_machine(next_deadline_), until);
    drop_token();
    if (kick) wake();
    if (busy) {
      idle_since = never;
      continue;
    }
    const Time now = read_clock();
    idle_since = std::min(idle_since, now);
    if (now - idle_since < spin_before_sleep) continue;
    // One thread sleeps at the descriptors, so that a kick is never taken by another one.
    if (at_descriptors_.exchange(true)) {
      jfc.sleep(command_patience);
      continue;
    }
    if (jfc.sleep_elsewhere()) sleep(limit);
    jfc.awake();
    at_descriptors_.store(false);
  }
}

void Runner::wait_simulated(jetty::Jfc& jfc, Duration limit) {
  const Time now = clock_->now();
  const Time until = limit > never - now ? never : now + limit;
  while (!jfc.ready() && clock_->now() < until) {
    if (!clock_->step(until)) return;
  }
}

// ---- commands

void Runner::carry(Command& command) {
  engine_.mailbox().push(command);
  if (simulated()) {
    // Time goes on as far as it must for the command to be done.
    while (command.done.load(std::memory_order_acquire) == 0) {
      pass(clock_->now());
      if (command.done.load() == 0) clock_->step(clock_->now() + command_patience);
    }
    return;
  }
  wake();
  while (command.done.load(std::memory_order_acquire) == 0) {
    try_pass(false);
    if (command.done.load(std::memory_order_acquire) != 0) return;
    futex_wait(command.done, 0, command_patience);
  }
}

}  // namespace urma::engine
