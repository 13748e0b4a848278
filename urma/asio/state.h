#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "urma/asio/arrival.h"
#include "urma/asio/operation.h"
#include "urma/asio/readiness.h"
#include "urma/asio/service.h"
#include "urma/urma.hpp"

namespace urma::asio {

struct JettyOptions {
  // Works that may have left and not come back; what is posted beyond waits in line here. From 1.
  uint32_t berths = 128;
  // Messages that may have arrived, each with a buffer of `message_bytes` here, and as many
  // immediates. With 0 nothing arrives.
  uint32_t receives = 0;
  uint32_t message_bytes = max_send_bytes;
  // As in urma::JettyOptions. Bound them: a work whose memory is lent ends no earlier.
  uint32_t inline_bytes = 64;
  Duration operation_timeout{};
  Duration receiver_timeout = Duration::max();
};

namespace detail {

class ArrivalOperation : public Outstanding<Arrival> {
 protected:
  ~ArrivalOperation() = default;
};

// A Jetty, its operations and the buffers of what arrives. Works complete in the Jetty's own queue,
// arrivals in that of a Jfr: so what nobody takes yet stays in the library, where it holds its
// senders back, and works are polled nevertheless.
//
// `mutex_` guards all of it and is the thread that posts and polls, in the library's words. Of each
// queue one `pump` runs at a time, or waits in the reactor.
class State final : public Owner {
 public:
  static Result<std::shared_ptr<State>> make(const Executor& executor, Device& device,
                                             const JettyOptions& options) {
    if (options.berths == 0 || (options.receives > 0 && options.message_bytes == 0)) {
      return Error{Status::invalid_argument,
                   "asio jetty: berths, or message_bytes with receives, are 0. Fix: give 1 "
                   "or more"};
    }
    return made_by("asio jetty", [&]() -> Result<std::shared_ptr<State>> {
      auto state = std::make_shared<State>(executor, options);
      if (auto made = state->make_queues(device); !made) return made.error();
      state->service_->add(*state);
      return state;
    });
  }

  State(const Executor& executor, const JettyOptions& options)
      : executor_(executor), options_(options), service_(&Service::of(executor)) {}
  ~State() { close(); }

  const Executor& executor() const { return executor_; }
  // Until `close`; then one that was moved from.
  const urma::Jetty& jetty() const { return jetty_ ? *jetty_ : *nothing_; }
  // One that was moved from, for the object that holds this state.
  urma::Jetty take_nothing() { return std::move(*nothing_); }

  // Ends an operation that was started on an object that was moved from.
  static void end_as_closed(WorkOperation& operation) {
    operation.result = of(operation.work, Status::closed);
    ended_with(operation, Status::closed)->complete(Run::later);
  }
  static void end_as_closed(ArrivalOperation& operation) {
    operation.result.completion_.status = Status::closed;
    operation.result.completion_.operation = Operation::receive;
    ended_with(operation, Status::closed)->complete(Run::later);
  }

  void start(WorkOperation& operation, Duration timeout) {
    const Held held(*this);
    if (over_ != Status::ok) return end_later(operation, over_, over_);
    if (timeout < Duration{}) return end_later(operation, Status::bad_work, Status::bad_work);
    limit(executor_, operation, timeout);
    waiting_.push_back(&operation);
    post_waiting();
    if (operation.berth == WorkOperation::no_berth && !operation.work.buffers.empty()) {
      keep_pieces(operation);
    }
    wake(works_);
  }

  void start(ArrivalOperation& operation, Duration timeout) {
    const Held held(*this);
    if (over_ != Status::ok || !jfr_) {
      return end_later(operation, over_ != Status::ok ? over_ : Status::unsupported);
    }
    if (timeout < Duration{}) return end_later(operation, Status::invalid_argument);
    limit(executor_, operation, timeout);
    takers_.push_back(&operation);
    wake(arrivals_);
  }

  void cancel(const Ticket& ticket, Status why, Effects effects) override {
    const Held held(*this);
    if (ticket.arrival != nullptr) {
      ArrivalOperation& operation = *ticket.arrival;
      std::erase(takers_, &operation);
      end_later(operation, why);
      rest(arrivals_);
    } else if (ticket.work != nullptr) {
      cancel_work(*ticket.work, why, effects);
    }
  }

  // Ends all operations. Those that waited for berths have not executed; the library says what
  // became of others, as a rule at once.
  void cancel_all() { complete(stop_all()); }

  void close() { complete(leave()); }

  void shutdown() override {
    const Ended ended = leave();
    for (WorkOperation* const one : ended.works) one->drop();
    for (ArrivalOperation* const one : ended.arrivals) one->drop();
  }

  // A buffer that the application has done with.
  void give_back(std::span<std::byte> message) {
    const Held held(*this);
    const auto at = static_cast<size_t>(message.data() - memory_.get());
    if (jfr_) post_receive(static_cast<uint32_t>(at / options_.message_bytes));
  }

 private:
  // The lock. What was kept for works that are over goes after it: whoever owns it may call us.
  class Held {
   public:
    explicit Held(State& state) : state_(state) { state_.mutex_.lock(); }
    Held(const Held&) = delete;
    ~Held() {
      const auto dropped = std::exchange(state_.dropped_, {});
      state_.mutex_.unlock();
    }

   private:
    State& state_;
  };

  // Completions at a time, and how often before others have their turn.
  static constexpr size_t batch = 64;
  static constexpr int turns_at_most = 4;

  struct Queue {
    std::optional<Readiness> readiness;
    bool busy = false;  // pumped, or waited for
    bool (State::*arm)();
    bool (State::*wanted)() const;
    void (State::*pump)();
  };
  // A place in the Jetty, by the tag of its work.
  struct Berth {
    WorkOperation* operation = nullptr;  // null: vacant, or given up
    std::shared_ptr<const void> keep;
    uint64_t tag = 0;
  };
  struct Ended {
    std::vector<WorkOperation*> works;
    std::vector<ArrivalOperation*> arrivals;
  };

  std::shared_ptr<State> self() { return std::static_pointer_cast<State>(shared_from_this()); }

  Result<void> make_queues(Device& device) {
    if (options_.receives > 0) {
      auto jfr = device.jfr({.receives = options_.receives});
      if (!jfr) return jfr.error();
      jfr_.emplace(std::move(*jfr));
      memory_ = std::unique_ptr<std::byte[]>(
          new std::byte[size_t{options_.receives} * options_.message_bytes]);
      for (uint32_t i = 0; i < options_.receives; ++i) post_receive(i);
      if (auto ready = watch(arrivals_, jfr_->fd()); !ready) return ready.error();
    }
    auto jetty = device.jetty({.berths = options_.berths,
                               .inline_bytes = options_.inline_bytes,
                               .operation_timeout = options_.operation_timeout,
                               .receiver_timeout = options_.receiver_timeout,
                               .receives_from = jfr_ ? &*jfr_ : nullptr});
    if (!jetty) return jetty.error();
    jetty_.emplace(std::move(*jetty));
    nothing_.emplace(std::move(*jetty));
    // So many, as the library has found, there may be.
    berths_.resize(options_.berths);
    for (uint32_t i = options_.berths; i > 0; --i) vacant_.push_back(i - 1);
    return watch(works_, jetty_->fd());
  }

  Result<void> watch(Queue& queue, const Result<int>& descriptor) {
    if (!descriptor) return descriptor.error();
    queue.readiness.emplace(executor_, *descriptor);
    return {};
  }

  void post_receive(uint32_t slot) {
    // Tag 0 is that of an immediate without message. A slot is vacant: there is one per buffer. It
    // is refused only after the device has closed, and then the queue says so when it is polled.
    (void)jfr_->receive(
        {memory_.get() + size_t{slot} * options_.message_bytes, options_.message_bytes},
        uint64_t{slot} + 1);
  }

  // ---- works

  void post_waiting() {
    while (!waiting_.empty() && !vacant_.empty()) {
      WorkOperation& operation = *waiting_.front();
      const uint32_t number = vacant_.back();
      Work work = operation.work;
      work.tag_value = number;
      work.signalled = true;
      // Closed, or forked: polling says which.
      if (jetty_->post(work) == 0) return;
      berths_[number] = {&operation, std::move(operation.keep), operation.work.tag_value};
      operation.berth = number;
      vacant_.pop_back();
      waiting_.pop_front();
      ++posted_;
    }
  }

  // A work with too many is refused as it would have been, when its turn comes.
  static void keep_pieces(WorkOperation& operation) {
    const auto all = operation.work.buffers;
    const auto pieces = all.first(std::min(all.size(), max_buffers + 1));
    operation.pieces.assign(pieces.begin(), pieces.end());
    operation.work.buffers = operation.pieces;
  }

  bool arm_works() { return jetty_->arm(); }
  bool works_wanted() const { return posted_ > 0 || !waiting_.empty(); }

  void pump_works() {
    std::vector<WorkOperation*> ended;
    {
      const Held held(*this);
      works_.busy = false;
      std::array<Completion, batch> out;
      for (int turns = 0; jetty_ && works_wanted(); ++turns) {
        const size_t count = turns < turns_at_most ? jetty_->poll(out) : 0;
        for (const Completion& completion : std::span(out).first(count)) settle(completion, ended);
        if (count == 0) {
          wake(works_);
          break;
        }
        post_waiting();
      }
    }
    deliver_all(ended);
  }

  void settle(const Completion& completion, std::vector<WorkOperation*>& ended) {
    if (completion.status == Status::closed || completion.status == Status::forked) {
      return stop(completion.status, ended);
    }
    const auto number = static_cast<uint32_t>(completion.tag);
    Berth berth = std::exchange(berths_[number], {});
    let_go(berth.keep);
    vacant_.push_back(number);
    WorkOperation* const operation = berth.operation;
    if (operation == nullptr) return;
    --posted_;
    operation->berth = WorkOperation::no_berth;
    operation->result = completion;
    operation->result.tag = berth.tag;
    ended.push_back(ended_with(*operation, completion.status));
  }

  // Nothing more will come: each work of the Jetty has completed, or is another process's.
  void stop(Status why, std::vector<WorkOperation*>& ended) {
    over_ = why;
    for (WorkOperation* const one : take_works()) {
      one->result = of(one->work, why);
      ended.push_back(ended_with(*one, why));
    }
    vacant_.clear();
    for (uint32_t i = 0; i < berths_.size(); ++i) {
      let_go(berths_[i].keep);
      berths_[i] = {};
      vacant_.push_back(i);
    }
  }

  void cancel_work(WorkOperation& operation, Status why, Effects effects) {
    if (operation.berth == WorkOperation::no_berth) {
      std::erase(waiting_, &operation);
      end_later(operation, Status::flushed, why);
    } else if (berths_[operation.berth].keep != nullptr && effects == Effects::allowed) {
      // It goes on without its operation; the berth keeps its memory until it is back.
      berths_[operation.berth].operation = nullptr;
      --posted_;
      end_later(operation, Status::unknown, why);
    }
    rest(works_);
  }

  static Completion of(const Work& work, Status status) {
    Completion completion;
    completion.status = status;
    completion.operation = work.operation;
    completion.tag = work.tag_value;
    return completion;
  }

  // ---- arrivals

  bool arm_arrivals() { return jfr_->arm(); }
  bool arrivals_wanted() const { return !takers_.empty(); }

  void pump_arrivals() {
    std::vector<ArrivalOperation*> ended;
    {
      const Held held(*this);
      arrivals_.busy = false;
      std::array<Completion, batch> out;
      for (int turns = 0; jfr_ && arrivals_wanted(); ++turns) {
        // Never more than are wanted: the others stay where they hold their senders back.
        const size_t wanted = std::min(batch, takers_.size());
        const size_t count =
            turns < turns_at_most ? jfr_->poll(std::span(out).first(wanted)) : size_t{0};
        for (const Completion& completion : std::span(out).first(count)) hand(completion, ended);
        if (count == 0) {
          wake(arrivals_);
          break;
        }
      }
    }
    deliver_all(ended);
  }

  void hand(const Completion& completion, std::vector<ArrivalOperation*>& ended) {
    if (completion.status == Status::closed || completion.status == Status::forked) {
      over_ = completion.status;
      for (ArrivalOperation* const one : std::exchange(takers_, {})) {
        ended.push_back(ended_with(*one, over_));
      }
      return;
    }
    ArrivalOperation& operation = *takers_.front();
    takers_.pop_front();
    Arrival& arrival = operation.result;
    arrival.completion_ = completion;
    if (completion.tag != 0) {
      const size_t bytes = completion.ok() ? completion.bytes : 0;
      arrival.bytes_ = {memory_.get() + (completion.tag - 1) * options_.message_bytes, bytes};
      arrival.owner_ = self();
      arrival.completion_.tag = 0;
    }
    ended.push_back(ended_with(operation, completion.status));
  }

  // ---- waiting for queues

  // Sees to it that a queue with something wanted from it is pumped when it has something.
  void wake(Queue& queue) {
    if (queue.busy || !(this->*queue.wanted)()) return;
    queue.busy = true;
    // A pump that ran long lets others run before it goes on, and so does one that found something
    // while it armed.
    if ((this->*queue.arm)()) {
      queue.readiness->async_wait(
          [self = self(), pump = queue.pump](ErrorCode) { (*self.*pump)(); });
    } else {
      boost::asio::post(executor_, [self = self(), pump = queue.pump] { (*self.*pump)(); });
    }
  }

  // A wait for which nobody waits keeps no context running.
  void rest(Queue& queue) {
    if (queue.busy && queue.readiness && !(this->*queue.wanted)()) queue.readiness->cancel();
  }

  // ---- ends

  // `status`: what became of the work; `why`: of the operation.
  void end_later(WorkOperation& operation, Status status, Status why) {
    operation.result = of(operation.work, status);
    let_go(operation.keep);
    ended_with(operation, why)->complete(Run::later);
  }
  void let_go(std::shared_ptr<const void>& keep) {
    if (keep != nullptr) dropped_.push_back(std::move(keep));
  }
  void end_later(ArrivalOperation& operation, Status why) {
    operation.result.completion_.status = why;
    operation.result.completion_.operation = Operation::receive;
    ended_with(operation, why)->complete(Run::later);
  }

  // All operations that have not ended; none is left.
  std::vector<WorkOperation*> take_works() {
    std::vector<WorkOperation*> all;
    for (Berth& berth : berths_) {
      if (berth.operation != nullptr) all.push_back(std::exchange(berth.operation, nullptr));
    }
    all.insert(all.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    posted_ = 0;
    return all;
  }

  Ended stop_all() {
    const Held held(*this);
    if (!jetty_) return {};
    Ended ended = end_all();
    [[maybe_unused]] const auto closed = jetty_->reset();
    rest(works_);
    rest(arrivals_);
    return ended;
  }
  static void complete(const Ended& ended) {
    for (WorkOperation* const one : ended.works) one->complete(Run::later);
    for (ArrivalOperation* const one : ended.arrivals) one->complete(Run::later);
  }

  // Ends whatever is outstanding and takes it. Memory that was lent is the application's again.
  Ended end_all() {
    Ended ended;
    for (WorkOperation* const one : std::exchange(waiting_, {})) {
      one->result = of(one->work, Status::flushed);
      ended.works.push_back(ended_with(*one, Status::flushed));
    }
    for (ArrivalOperation* const one : std::exchange(takers_, {})) {
      one->result.completion_.status = Status::flushed;
      one->result.completion_.operation = Operation::receive;
      ended.arrivals.push_back(ended_with(*one, Status::flushed));
    }
    if (vacant_.size() < berths_.size()) {
      const size_t before = ended.works.size();
      [[maybe_unused]] const auto flushed = jetty_->flush();
      // Who cancels is told so, and by the completion what became of the work.
      drain(ended.works);
      for (size_t i = before; i < ended.works.size(); ++i) {
        if (ended.works[i]->error) ended.works[i]->error = make_error_code(Status::flushed);
      }
    }
    return ended;
  }

  // After a flush all completions are there; while another thread closes the device, soon.
  void drain(std::vector<WorkOperation*>& ended) {
    while (vacant_.size() < berths_.size()) {
      for (const Completion& completion : jetty_->wait(std::chrono::milliseconds(10))) {
        settle(completion, ended);
      }
    }
  }

  // From here on it knows neither the library nor the execution context.
  Ended leave() {
    const Held held(*this);
    if (!service_) return {};
    std::exchange(service_, nullptr)->remove(*this);
    Ended ended;
    if (jetty_) ended = end_all();
    works_.readiness.reset();
    arrivals_.readiness.reset();
    jetty_.reset();
    jfr_.reset();
    over_ = Status::closed;
    return ended;
  }

  const Executor executor_;
  const JettyOptions options_;
  std::mutex mutex_;
  Service* service_;
  std::unique_ptr<std::byte[]> memory_;  // of messages
  std::optional<urma::Jfr> jfr_;
  std::optional<urma::Jetty> jetty_;
  std::optional<urma::Jetty> nothing_;  // was moved from
  Queue works_{.readiness = {},
               .arm = &State::arm_works,
               .wanted = &State::works_wanted,
               .pump = &State::pump_works};
  Queue arrivals_{.readiness = {},
                  .arm = &State::arm_arrivals,
                  .wanted = &State::arrivals_wanted,
                  .pump = &State::pump_arrivals};
  std::vector<Berth> berths_;
  std::vector<uint32_t> vacant_;
  uint32_t posted_ = 0;  // berths whose operation has not ended
  std::deque<WorkOperation*> waiting_;
  std::deque<ArrivalOperation*> takers_;
  std::vector<std::shared_ptr<const void>> dropped_;  // to be let go of without the lock
  Status over_ = Status::ok;                          // why nothing can be started any more
};

}  // namespace detail

inline Arrival::~Arrival() {
  if (owner_) owner_->give_back(bytes_);
}

}  // namespace urma::asio
