#include "engine/runner.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/above_standard.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/signals_blocked.h"

namespace urma::engine {
namespace {

// Going to sleep and waking costs some 25 us; something may come sooner.
constexpr Duration spin_before_sleep = std::chrono::microseconds(50);
// Commands that are not done are looked at again after this: some end within half a millisecond.
constexpr Duration command_patience = std::chrono::microseconds(250);
// A thread that is served by another one of the application, which may stop, looks again after
// this.
constexpr Duration served_patience = std::chrono::milliseconds(1);
// A port that cannot wake anybody is asked this often.
constexpr Duration port_patience = std::chrono::microseconds(100);
// A bell in a window whose file was cut off is never rung again: so its sleeper looks.
constexpr Duration bell_patience = std::chrono::seconds(1);
// A waiting thread looks this often whether the device has been closed.
constexpr Duration closing_patience = std::chrono::milliseconds(100);
// How long a look of an inlined waiting thread takes in a simulation.
constexpr Duration simulated_look = std::chrono::microseconds(1);
constexpr Duration goodbye_limit = std::chrono::milliseconds(200);

// How long the service thread looks on: at first, and twice as long each time that it finds the
// application polling, because a look costs the polling thread 15 us and more on a virtual machine.
constexpr Duration take_over_after = std::chrono::microseconds(200);
constexpr Duration take_over_at_last_after = 16 * take_over_after;
// An application that polled so recently is still polling.
constexpr Duration between_polls = std::chrono::microseconds(20);
constexpr uint32_t passes_per_clock = 4;
// Looks in vain after which an application is one that polls.
constexpr uint32_t looks_of_a_poller = 32;
// A thread that polls gives way after this many looks in vain, while no other thread is found to
// wait for its processor.
constexpr uint32_t looks_before_giving_way = 32;
// For this many looks in vain of one thread, the other threads that polled are taken to poll still.
constexpr uint32_t looks_in_company = 1024;
// A `sched_yield` that took longer has run another thread; one that has not takes 0.2 to 0.5 us.
constexpr Duration yield_with_switch = std::chrono::microseconds(2);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// One spinning thread too many turns microseconds into scheduler slices. There are others on this
// machine: the peers.
bool may_spin(uint32_t spinning) {
  static const uint32_t processors = std::thread::hardware_concurrency();
  return spinning <= processors / 2;
}
// The service thread spins beside the application's own.
bool service_may_spin() { return may_spin(2); }

// A page of its own.
Region page() {
  Region made = Region::try_make(4096, 4096);
  if (made.data() == nullptr) throw std::bad_alloc();
  return made;
}

Error no_descriptor(const char* what) {
  return {Status::no_resources, std::string("open: making ") + what + ": " + std::strerror(errno) +
                                    ". Fix: close descriptors, or allow more (ulimit -n)"};
}

}  // namespace

Runner::Runner(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings,
               Threads threads, std::unique_ptr<Entropy> entropy)
    : fork_page_(page()),
      alive_(reinterpret_cast<std::atomic<uint32_t>*>(fork_page_.data())),
      threads_(threads),
      port_facts_(port->facts()),
      places_(port_facts_.paths.empty() ? std::vector{port_facts_.self} : port_facts_.paths),
      clock_(port->clock()),
      engine_(std::move(port), settings, std::move(entropy)),
      ports_(engine_.descriptors().begin(), engine_.descriptors().end()),
      lossless_(engine_.port().ways() != nullptr),
      bell_(engine_.port().bell()),
      keeper_(threads == Threads::served ? Keeper::service : Keeper::application) {
  self_ = engine_.transport().know(port_facts_.eid, port_facts_.self, settings.life);
  madvise(fork_page_.data(), fork_page_.bytes(), MADV_WIPEONFORK);
  alive_->store(1);
  if (clock_ == nullptr) return;
  clock_->attach(*this, port_facts_.self);
  for (const Endpoint& path : port_facts_.paths) {
    if (!(path == port_facts_.self)) clock_->attach(*this, path);
  }
}

void Runner::report_to(std::unique_ptr<Reporter> reporter) {
  reporter_ = std::move(reporter);
  reporting_ = true;
  report_at_ = Time{};
}

Result<void> Runner::start() {
  wake_descriptor_ = above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (wake_descriptor_ < 0) {
    return no_descriptor("an eventfd");
  }
  if (reporter_ != nullptr) {
    if (auto started = reporter_->start(port_facts_.description); !started) return started;
  }
  if (!has_service()) return {};
  timer_ = above_standard(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (timer_ < 0) {
    return no_descriptor("a timer");
  }
  const auto entry = [](void* self) -> void* {
    static_cast<Runner*>(self)->serve();
    return nullptr;
  };
  const SignalsBlocked blocked;
  if (const int why = pthread_create(&thread_, nullptr, entry, this); why != 0) {
    return Error{Status::no_resources,
                 std::string("open: starting the device's thread: ") + std::strerror(why) +
                     ". Fix: allow more threads (ulimit -u, a container's pids limit) or address "
                     "space (ulimit -v), or open it with Threads::inlined"};
  }
  pthread_setname_np(thread_, "urma-engine");
  running_ = true;
  return {};
}

Runner::~Runner() {
  if (here()) {
    close();
    if (clock_ != nullptr) clock_->detach(*this);
  } else if (reporter_ != nullptr) {
    reporter_->abandon();
  }
  // In a child the thread and the peers are the parent's; only what was copied is given back.
  for (const int descriptor : {wake_descriptor_, timer_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
  LazyBlock::tidy();
}

void Runner::close() {
  if (!open_.exchange(false)) {
    // Another thread is closing it.
    while (closed_.load(std::memory_order_acquire) == 0) futex_wait(closed_, 0, closing_patience);
    return;
  }
  call([](Engine& engine, Time now) { return engine.end_everything(now); });
  bool saying_goodbye = false;
  Time give_up{};
  call([&](Engine& engine, Time now) {
    transport::Transport& transport = engine.transport();
    if (give_up == Time{}) give_up = now + goodbye_limit;
    // Answers and acknowledgements are sent first.
    if (!saying_goodbye && (transport.idle() || now >= give_up)) {
      transport.close(now);
      saying_goodbye = true;
    }
    engine.events().hand_over(now);
    return saying_goodbye && (transport.closed() || now >= give_up);
  });
  if (reporter_ != nullptr) report_last();
  if (running_) {
    stop_.store(true);
    set_timer(Duration(1));
    wake();
    pthread_join(thread_, nullptr);
    running_ = false;
  }
  closed_.store(1, std::memory_order_release);
  futex_wake_all(closed_);
  ring_descriptors();
}

void Runner::report_last() {
  Snapshot last;
  call([&](Engine& engine, Time) {
    last = engine.snapshot();
    reporting_ = false;
    report_at_ = never;
    return true;
  });
  reporter_->close(last);
}

// ---- paths

std::vector<Endpoint> Runner::places() const {
  const std::lock_guard lock(places_mutex_);
  return places_;
}

void Runner::note_places() {
  PathList paths;
  call([&](Engine& engine, Time) {
    paths = engine.transport().paths();
    return true;
  });
  std::vector<Endpoint> places;
  for (unsigned i = 0; i < paths.count; ++i) {
    if (paths.there(i)) places.push_back(paths.endpoints[i]);
  }
  const std::lock_guard lock(places_mutex_);
  places_.swap(places);
}

Result<Endpoint> Runner::add_path(std::string_view device) {
  const std::lock_guard lock(moving_mutex_);
  drivers::PathPorts* const ports = engine_.port().path_ports();
  if (ports == nullptr) {
    return Error{Status::unsupported,
                 "add_path: this device was opened with one path. Fix: open paths():DEVICE+DEVICE, "
                 "not within fault() or pcap()"};
  }
  auto joining = ports->prepare(device);
  if (!joining) return Error{joining.status(), "add_path: " + joining.error().message};
  const Endpoint place = (*joining)->self();
  if (clock_ != nullptr) clock_->attach(*this, place);
  bool added = false;
  call([&](Engine& engine, Time now) {
    added = engine.add_path(**joining, now);
    return true;
  });
  if (!added) {
    return Error{Status::no_resources,
                 "add_path: it has eight paths, which is as many as there may be. Fix: remove_path "
                 "one of Device::endpoints first"};
  }
  note_places();
  return place;
}

Result<void> Runner::remove_path(const Endpoint& place) {
  const std::lock_guard lock(moving_mutex_);
  using Found = Engine::PathRemoval::Found;
  Engine::PathRemoval removal;
  removal.place = place;
  const bool several = engine_.port().path_ports() != nullptr;
  if (several) {
    call([&](Engine& engine, Time now) { return engine.remove_path(removal, now); });
  }
  if (!several || removal.found == Found::last) {
    return Error{Status::invalid_argument,
                 "remove_path: " + to_string(place) +
                     " is the last path, without which nobody reaches this device. Fix: add_path "
                     "another one first, or close the device"};
  }
  if (removal.found == Found::nowhere) {
    return Error{Status::invalid_argument, "remove_path: this device is not reached at " +
                                               to_string(place) +
                                               ". Fix: one of Device::endpoints"};
  }
  note_places();
  return {};
}

// ---- descriptors to wait at

bool Runner::give_descriptor(const std::shared_ptr<jetty::Jfc>& jfc) {
  const std::lock_guard lock(given_mutex_);
  std::erase_if(given_, [](const auto& given) { return given.expired(); });
  given_.emplace_back(jfc);
  if (jfc->make_descriptor()) return true;
  given_.pop_back();
  return false;
}

void Runner::attach(const std::shared_ptr<jetty::Jfc>& jfc,
                    const std::shared_ptr<jetty::Jfce>& events, uint64_t tag) {
  const std::lock_guard lock(given_mutex_);
  std::erase_if(given_, [](const auto& given) { return given.expired(); });
  given_.emplace_back(jfc);
  jfc->attach(events, tag);
}

void Runner::ring_descriptors() {
  if (engine_.events().descriptor() >= 0) engine_.events().ring();
  const std::lock_guard lock(given_mutex_);
  for (const auto& given : given_) {
    if (const auto jfc = given.lock()) jfc->ring();
  }
}

// ---- passes

// The clock takes longer than a look at memory, and most looks find nothing: every fourth of them
// asks. What comes in between is dated back to the last look that did, which makes nothing of ours
// end early: what begins now is posted, and then the clock is asked.
Time Runner::machine_time(const jetty::Jfc* polled) {
  const bool recent = polled != nullptr && lossless_ && engine_.looked_only() &&
                      !engine_.dirty().any() && ++passes_since_clock_ < passes_per_clock;
  if (recent) return machine_time_;
  passes_since_clock_ = 0;
  return machine_time_ = read_clock();
}

// With the token. Returns true if there may be more to do.
bool Runner::run_pass(const jetty::Jfc* polled) {
  const Time machine = clock_ != nullptr ? clock_->now() : machine_time(polled);
  const Time now = time_.advance(machine, next_deadline_);
  const bool timer_ran = now >= next_deadline_;
  const bool busy = engine_.pass(now, polled);
  if (polled != nullptr) polled_at_.store(machine, std::memory_order_relaxed);
  rouse_ = false;
  const bool reports = machine >= report_at_;
  if (reports) {
    report(machine);
  } else if ((busy || timer_ran) && report_at_ == never && reporting_) {
    report_at_ = machine + Reporter::interval;
  }
  // An alarm in the past would let no thread sleep.
  if (engine_.looked_only() && !reports) return false;
  if (polled != nullptr && engine_.told()) expects_post_.store(true, std::memory_order_relaxed);
  next_deadline_ = engine_.next_deadline();
  if (engine_.commands_wait()) next_deadline_ = std::min(next_deadline_, now + command_patience);
  const Time due = std::min(time_.to_machine(next_deadline_), report_at_);
  const Time planned = alarm_.load(std::memory_order_relaxed);
  if (due != planned) alarm_.store(due, std::memory_order_relaxed);
  // For a completion of a thread that sleeps there, or to wake earlier than was planned.
  rouse_ = engine_.take_kick() || due < planned;
  return busy;
}

void Runner::report(Time machine) {
  const bool told_all = reporter_->report(engine_, machine);
  // How fast a log's thread is must not show in a simulation: what waits is told with what follows.
  report_at_ = told_all || simulated() ? never : machine + Reporter::interval;
}

// A peer waits for what is posted first after something has come. What has to be noted of it, and
// the clock, come after it.
bool Runner::send_ahead(uint32_t jetty) {
  if (!take_token()) return false;
  expects_post_.store(false, std::memory_order_relaxed);
  const bool sent = !keeps() && engine_.send_ahead(jetty);
  if (sent) {
    passes_since_clock_ = 0;
    machine_time_ = clock_ != nullptr ? clock_->now() : read_clock();
    next_deadline_ = time_.advance(machine_time_, next_deadline_);
    engine_.take_sent_ahead(jetty, next_deadline_);
    alarm_.store(machine_time_, std::memory_order_relaxed);
  }
  drop_token();
  if (sent) wake();
  return sent;
}

Runner::Ran Runner::try_pass(const jetty::Jfc* polled) {
  if (!take_token()) return Ran::by_another;
  const bool busy = run_pass(polled);
  const bool rouse = rouse_;
  drop_token();
  if (rouse) wake();
  return busy ? Ran::busy : Ran::idle;
}

// In a simulation the clock runs the passes that a served engine's thread runs elsewhere. An
// inlined engine has the application's polls.
Time Runner::pass(Time) {
  if (inlined() || try_pass(nullptr) == Ran::by_another) return never;
  return alarm_.load(std::memory_order_relaxed);
}

void Runner::look(const jetty::Jfc& jfc) {
  if (threads_ == Threads::automatic && keeps()) {
    const uint32_t looks = looks_.load(std::memory_order_relaxed) + 1;
    looks_.store(looks, std::memory_order_relaxed);
    if (looks > looks_of_a_poller) recall();
  }
  // Once a device begins to close, polls run the passes that end what was posted just before.
  const bool runs = polled_here() || !open();
  if ((runs && try_pass(&jfc) == Ran::busy) || simulated()) return;
  // The service thread of a served device competes with each thread that polls.
  if (!runs || polled_by_several()) give_way();
}

// Whether several threads poll this device, asked by a thread that has polled in vain. A thread
// that polls alone writes nothing here.
bool Runner::polled_by_several() {
  const pthread_t self = pthread_self();
  if (latest_poller_.load(std::memory_order_relaxed) != self) {
    latest_poller_.store(self, std::memory_order_relaxed);
    company_.store(looks_in_company, std::memory_order_relaxed);
    return true;
  }
  const uint32_t company = company_.load(std::memory_order_relaxed);
  if (company > 0) company_.store(company - 1, std::memory_order_relaxed);
  return company > 0;
}

// Threads that poll in vain and outnumber the processors would each use up a slice of the
// scheduler, milliseconds, while the thread that has something to do waits for a processor: 128
// threads on two processors then need 180 passes for each work. If a thread was waiting for the
// processor when this one gave way, this one gives way again after its next look.
void Runner::give_way() {
  struct Looks {
    uint32_t in_vain = 0;  // since it gave way
    uint32_t most = looks_before_giving_way;
  };
  thread_local Looks looks;
  if (++looks.in_vain < looks.most) return;
  looks.in_vain = 0;
  const Time before = read_clock();
  sched_yield();
  const bool switched = read_clock() - before > yield_with_switch;
  looks.most = switched ? 1 : std::min(2 * looks.most, looks_before_giving_way);
}

// ---- sleeping

// After what is to be noticed has been published.
void Runner::wake() {
  if (simulated()) return clock_->poke(*this);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_relaxed) || !asleep_.exchange(false)) return;
  if (bell_ != nullptr) return bell_->ring();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

// Without the token. At most until `until` in the machine's time, and until `jfc` has something if
// there is one; the service thread without, for as long as it keeps.
void Runner::sleep(jetty::Jfc* jfc, Time until) {
  asleep_.store(true, std::memory_order_relaxed);
  bool nothing = true;
  if (bell_ != nullptr) {
    bell_->drowse();
    // Only a pass sees what peers bring.
    nothing = try_pass(nullptr) == Ran::idle;
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  nothing = nothing && (jfc != nullptr ? jfc->sleep_elsewhere() : keeps());
  if (nothing && !engine_.has_work() && !stop_.load(std::memory_order_relaxed)) {
    const Time alarm = std::min(until, alarm_.load(std::memory_order_relaxed));
    bell_ != nullptr ? bell_->rest(std::min(alarm, read_clock() + bell_patience))
                     : poll_descriptors(alarm);
  }
  if (jfc != nullptr) jfc->awake();
  if (bell_ != nullptr) bell_->awake();
  asleep_.store(false, std::memory_order_relaxed);
}

void Runner::poll_descriptors(Time until) {
  std::array<pollfd, 1 + drivers::PacketPort::most_descriptors> descriptors;
  descriptors[0] = {wake_descriptor_, POLLIN, 0};
  URMA_ASSERT(engine_.descriptors().size() < descriptors.size(), "a port has few descriptors");
  nfds_t used = 1;
  for (const int port : engine_.descriptors()) descriptors[used++] = {port, POLLIN, 0};
  // A port without a descriptor is looked at.
  if (used == 1) until = std::min(until, read_clock() + port_patience);
  timespec timeout{};
  const timespec* patience = nullptr;
  if (until != never) {
    const Duration left = std::max(until - read_clock(), Duration{});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timeout = {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
    patience = &timeout;
  }
  ppoll(descriptors.data(), used, patience, nullptr);
  if (descriptors[0].revents == 0) return;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_descriptor_, &count, sizeof count);
}

// ---- the service thread

void Runner::serve() {
  Time idle_since = never;
  while (!stop_.load(std::memory_order_relaxed)) {
    // A thread began to wait while the service thread took over, or the application handed over
    // while another thread of its sleeps there. That one runs the passes; beside it this thread
    // would spin.
    if (at_descriptors_.load(std::memory_order_relaxed)) keeper_.store(Keeper::application);
    if (!keeps()) {
      watch();
      continue;
    }
    const Ran ran = try_pass(nullptr);
    if (ran == Ran::by_another) sched_yield();
    if (ran == Ran::busy) idle_since = never;
    if (ran != Ran::idle) continue;
    if (service_may_spin()) {
      const Time now = read_clock();
      idle_since = std::min(idle_since, now);
      if (now - idle_since < spin_before_sleep) {
        pause();
        continue;
      }
    }
    if (at_descriptors_.exchange(true)) continue;
    sleep(nullptr, never);
    at_descriptors_.store(false);
  }
}

// Returns when no thread polls or waits any more, the engine is handed over, or it is to stop. A
// thread that causes one of these says so first and then sets the timer; after setting it, watch
// looks each time.
void Runner::watch() {
  Duration patience = take_over_after;
  set_timer(patience);
  while (!keeps() && !stop_.load(std::memory_order_relaxed)) {
    uint64_t fired = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_, &fired, sizeof fired);
    // The thread that sleeps there sets the timer when it leaves.
    if (at_descriptors_.load()) continue;
    const Duration silent = read_clock() - polled_at_.load(std::memory_order_relaxed);
    if (silent >= take_over_after) {
      looks_.store(0, std::memory_order_relaxed);
      keeper_.store(Keeper::service, std::memory_order_relaxed);
      return;
    }
    patience =
        silent < between_polls ? std::min(2 * patience, take_over_at_last_after) : take_over_after;
    set_timer(patience);
  }
}

void Runner::set_timer(Duration after) {
  const itimerspec at{.it_interval = {}, .it_value = {0, static_cast<long>(after.count())}};
  timerfd_settime(timer_, 0, &at, nullptr);
}

void Runner::recall() {
  if (keeper_.exchange(Keeper::application) == Keeper::service) wake();
}

// First the word, then the timer: a service thread that was recalled just before, and has not gone
// to its timer yet, stays.
void Runner::hand_over() {
  if (threads_ != Threads::automatic) return;
  // One look in vain before each sleep does not make a poller.
  looks_.store(0, std::memory_order_relaxed);
  if (keeps()) return;
  keeper_.store(Keeper::service);
  set_timer(Duration(1));
}

// ---- waiting for completions

void Runner::wait(jetty::Jfc& jfc, Duration limit) {
  if (jfc.ready()) return;
  if (simulated()) return wait_simulated(jfc, limit);
  const Time now = read_clock();
  const Time until = limit > never - now ? never : now + limit;
  if (polled_here()) return wait_ourselves(jfc, until);
  while (!jfc.ready() && !closed()) {
    const Duration left = until == never ? closing_patience : until - read_clock();
    if (left <= Duration{}) return;
    jfc.sleep(std::min(left, closing_patience));
  }
}

void Runner::wait_ourselves(jetty::Jfc& jfc, Time until) {
  if (keeps()) recall();
  jfc.awake();  // its descriptor need not tell what this thread brings itself
  Time idle_since = never;
  const bool may = may_spin(spinning_.fetch_add(1, std::memory_order_relaxed) + 1);
  const Duration spin = may ? spin_before_sleep : Duration{};
  while (!jfc.ready() && !closed()) {
    const Time begun = read_clock();
    if (begun >= until) break;
    const Ran ran = try_pass(&jfc);
    // The token's holder runs the engine for this thread, but may stop.
    if (ran == Ran::by_another) jfc.sleep(served_patience);
    if (ran == Ran::busy) idle_since = never;
    if (ran != Ran::idle) continue;
    const Time now = read_clock();
    idle_since = std::min(idle_since, now);
    if (now - idle_since >= spin) wait_at_descriptors(jfc, until);
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
}

// One thread sleeps at the descriptors, so that a kick is never taken by another one. The others
// are woken at their JFCs, by it or by the service thread.
void Runner::wait_at_descriptors(jetty::Jfc& jfc, Time until) {
  const Time now = read_clock();
  if (at_descriptors_.exchange(true)) {
    const Duration patience = has_service() ? closing_patience : served_patience;
    return jfc.sleep(std::min(patience, until - now));
  }
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  sleep(&jfc, std::min(until, now + closing_patience));
  spinning_.fetch_add(1, std::memory_order_relaxed);
  at_descriptors_.store(false);
  // One that was handed over must not wait for longer.
  if (timer_ >= 0 && !keeps()) set_timer(take_over_after);
}

void Runner::wait_simulated(jetty::Jfc& jfc, Duration limit) {
  const Time now = clock_->now();
  const Time until = limit > never - now ? never : now + limit;
  while (!jfc.ready() && !closed() && clock_->now() < until) {
    Time next = until;
    if (inlined()) {
      try_pass(nullptr);
      if (jfc.ready()) return;
      // No other thread runs its timers; what arrives ends the step anyway.
      const Time due = alarm_.load(std::memory_order_relaxed);
      next = std::min(std::max(due, clock_->now() + simulated_look), until);
    }
    if (!clock_->step(next) && next == until) return;
  }
}

// ---- commands

void Runner::carry(Command& command) {
  engine_.mailbox().push(command);
  if (simulated()) {
    // Time goes on as far as it must for the command to be done.
    while (!command.is_done()) {
      try_pass(nullptr);
      if (!command.is_done()) clock_->step(clock_->now() + command_patience);
    }
    return;
  }
  wake();
  while (!command.is_done()) {
    try_pass(nullptr);
    if (!command.is_done()) command.await(command_patience);
  }
}

}  // namespace urma::engine
