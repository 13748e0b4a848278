#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/not_inherited.h"
#include "engine/engine.h"
#include "engine/engine_time.h"
#include "engine/name_files.h"
#include "engine/reporter.h"

namespace urma::engine {

// Decides which thread runs the engine's next pass: exactly one at a time, the one that holds the
// token. No thread waits for the token; a thread that does not get it is served by the holder.
//
// No thread sleeps through an event. A thread that is about to sleep sets `asleep_`, fences, and
// only then looks at all that could end its sleep: posts and commands, the alarm, its completions.
// A thread that brings one of these publishes it, fences, and then looks at `asleep_`. So either
// the sleeper sees what was published, or the other thread sees the sleeper and wakes it.
//
// Automatic: the keeper is responsible for running passes: the application while it polls or waits,
// else the service thread. While the application keeps, the service thread sleeps at its timer, and
// when that fires looks when a pass was polled last. If that is long ago, and if no thread sleeps
// at the descriptors, it takes over: it runs passes and sleeps at the descriptors itself. A thread
// that polls for long or waits recalls it; a thread that sleeps at a descriptor of its own hands
// over to it. If the service thread finds another thread asleep at the descriptors, it gives back
// and goes to its timer, which a thread sets when it leaves the descriptors or hands over, after it
// has said so.
//
// Writers: token, `polled_at_` - the thread that runs; `asleep_` - the sleeper, cleared by the
// thread that wakes it; `alarm_` - the token's holder; `keeper_` - the service thread takes over
// and gives back, the application recalls and hands over; `at_descriptors_` - the thread that
// sleeps there.
class Runner final : public drivers::VirtualClock::Driven {
 public:
  Runner(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings, Threads threads,
         std::unique_ptr<Entropy> entropy);
  ~Runner() override;

  // Before `start`: what is to be told of this device while it is open.
  void report_to(std::unique_ptr<Reporter> reporter);
  // Starts the engine's thread, if it has one.
  Result<void> start();
  // Ends all works and segments, tells the peers, stops the thread. Commands still work after it.
  void close();
  // False as soon as it begins to close: nothing is taken any more.
  bool open() const { return open_.load(std::memory_order_relaxed); }
  // All that was taken before has ended, and its completions are there.
  bool closed() const { return closed_.load(std::memory_order_acquire) != 0; }

  // False in a child of the process that opened the device: nothing here works any more.
  bool here() const { return *alive_ != 0; }
  bool inlined() const { return threads_ == Threads::inlined; }
  // Whether the application's threads run passes when they poll.
  bool polled_here() const { return threads_ != Threads::served; }
  // Whether a thread of the device's own runs passes when the application runs none.
  bool has_service() const { return !inlined() && !simulated(); }
  bool simulated() const { return clock_ != nullptr; }

  // ---- the data path; any thread

  // This Jetty has been posted to.
  void posted(uint32_t jetty) {
    if (expects_post_.load(std::memory_order_relaxed) && send_ahead(jetty)) return;
    engine_.dirty().mark(jetty);
    // The mark is the fence: either the sleeper sees it, or we see the sleeper.
    if (simulated() || asleep_.load(std::memory_order_seq_cst)) wake();
  }
  // Runs one bounded pass, if no other thread has the token. Busy: there may be more to do.
  enum class Ran : uint8_t { by_another, idle, busy };
  Ran try_pass(const jetty::Jfc* polled);
  // For an application that polled and found no completion: a pass, unless the device is served. If
  // that finds nothing either, the thread may give way to others that wait for its processor.
  void look(const jetty::Jfc& jfc);
  // From now on the service thread runs passes, because the caller sleeps at its JFC's descriptor.
  void hand_over();
  // Runs or awaits the engine until the JFC has something, at most `limit`.
  void wait(jetty::Jfc& jfc, Duration limit);

  // ---- the control path; any thread

  // Makes the JFC's descriptor, and rings it when the device closes. Returns false, and errno.
  bool give_descriptor(const std::shared_ptr<jetty::Jfc>& jfc);
  // Calls `function(Engine&, Time)` inside a pass, again and again until it returns true, and
  // returns then.
  template <class Function>
  void call(Function&& function) {
    struct Call : Command {
      Function* function;
    } command;
    command.function = &function;
    command.run = [](Command& self, Engine& engine, Time now) {
      return (*static_cast<Call&>(self).function)(engine, now);
    };
    carry(command);
  }
  EventQueue& events() { return engine_.events(); }
  // Has the channel told when the device closes, too. Throws std::bad_alloc.
  void attach(const std::shared_ptr<jetty::Jfc>& jfc, const std::shared_ptr<jetty::Jfce>& events,
              uint64_t tag);
  // The facts never change after open.
  const drivers::PortFacts& port_facts() const { return port_facts_; }
  // Where others reach it now, over each of its paths.
  std::vector<Endpoint> places() const;
  // Any thread, one at a time. The port that is given back has settled.
  Result<Endpoint> add_path(std::string_view device);
  Result<void> remove_path(const Endpoint& place);
  Incarnation life() const { return engine_.settings().life; }
  Duration operation_timeout() const { return engine_.settings().operation_timeout; }
  PeerId self() const { return self_; }

  // VirtualClock::Driven
  Time pass(Time now) override;

 private:
  void carry(Command& command);
  void note_places();
  bool take_token() {
    // An unsuccessful look does not take the cache line from the holder.
    return !token_.load(std::memory_order_relaxed) &&
           !token_.exchange(true, std::memory_order_acquire);
  }
  void drop_token() { token_.store(false, std::memory_order_release); }
  bool run_pass(const jetty::Jfc* polled);
  bool send_ahead(uint32_t jetty);
  Time machine_time(const jetty::Jfc* polled);
  [[gnu::cold]] void report(Time machine);
  void report_last();
  bool polled_by_several();
  void give_way();
  void wake();
  void sleep(jetty::Jfc* jfc, Time until);
  void poll_descriptors(Time until);
  void wait_ourselves(jetty::Jfc& jfc, Time until);
  void wait_at_descriptors(jetty::Jfc& jfc, Time until);
  void wait_simulated(jetty::Jfc& jfc, Duration limit);

  // The service thread.
  enum class Keeper : uint8_t { application, service };
  bool keeps() const { return keeper_.load(std::memory_order_relaxed) == Keeper::service; }
  [[gnu::cold]] void recall();
  void serve();
  void watch();
  void set_timer(Duration after);
  void ring_descriptors();

  // First in their page: zero in a child after fork, without anybody being told.
  Region fork_page_;
  std::atomic<uint32_t>* alive_;

  const Threads threads_;
  const drivers::PortFacts port_facts_;
  mutable std::mutex places_mutex_;
  std::vector<Endpoint> places_;  // as the transport's, in its order
  std::mutex moving_mutex_;       // held while one is added or removed
  drivers::VirtualClock* clock_;
  Engine engine_;
  std::vector<NotInherited> ports_;  // the engine's: a child would keep the address
  PeerId self_;
  Time machine_time_{};              // token
  uint32_t passes_since_clock_ = 0;  // token
  EngineTime time_;                  // token
  Time next_deadline_ = never;       // token; engine time
  // When the next report is due, in the machine's time; never: nothing has changed since the last.
  Time report_at_ = never;  // token
  bool reporting_ = false;  // token
  std::unique_ptr<Reporter> reporter_;
  bool rouse_ = false;   // token; the thread asleep at the descriptors must look
  const bool lossless_;  // time matters only to limits, none of them short
  Bell* const bell_;     // of the port, if that is where to sleep
  int wake_descriptor_ = -1;
  int timer_ = -1;  // where the service thread sleeps while the application keeps

  alignas(64) std::atomic<bool> token_{false};
  // Something has come: what the application posts first is sent ahead, the rest together.
  std::atomic<bool> expects_post_{false};      // the token's holder
  alignas(64) std::atomic<Time> polled_at_{};  // when the last pass of an application was run
  // When the next pass is due, in the machine's time.
  alignas(64) std::atomic<Time> alarm_{never};
  // Read by threads that post; written around a sleep, and when the device closes.
  alignas(64) std::atomic<bool> asleep_{false};
  std::atomic<Keeper> keeper_;
  std::atomic<bool> at_descriptors_{false};
  std::atomic<bool> open_{true};
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> closed_{0};
  bool running_ = false;
  pthread_t thread_{};
  std::mutex given_mutex_;
  std::vector<std::weak_ptr<jetty::Jfc>> given_;  // those with a descriptor
  // Looks in vain since the service took over. Many threads write it, and lose some.
  alignas(64) std::atomic<uint32_t> looks_{0};
  // The threads that poll in vain write both (`polled_by_several`): which did last, and for how
  // many more looks of one thread others are taken to poll, too.
  std::atomic<pthread_t> latest_poller_{};
  std::atomic<uint32_t> company_{0};
  std::atomic<uint32_t> spinning_{0};  // threads in `wait`
};

}  // namespace urma::engine
