// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "drivers/verbs/adapter.h"
#include "drivers/verbs/address_book.h"

namespace urma::drivers::verbs {

// Finds the queue pairs of other devices by their service ids, and tells others which queue pair
// this device has (SIDR of the InfiniBand communication manager). It watches the adapter too. A
// thread of its own makes these calls, because each takes milliseconds. The functions may be called
// by any thread.
class Resolver final : public Finder {
 public:
  // Errors: address_in_use, unsupported, no_resources.
  static Result<std::unique_ptr<Resolver>> start(const Adapter& adapter, const Settings& settings);
  ~Resolver() override;

  uint16_t service() const { return service_; }
  // Answers with this queue pair from now on, and watches it; before, others get no answer. It must
  // live as long as this object.
  void serve(ibv_qp& queue_pair) { serves_.store(&queue_pair, std::memory_order_release); }
  // Returns a descriptor that becomes readable when there are answers, or something has failed.
  int news() const { return news_; }
  void clear_news() const;

  bool ask(const Endpoint& to) override;
  size_t take(std::span<Answer> out) override;
  void discard(ibv_ah* handle) override;

  // Returns whether the queue pair was found to have failed, once each time.
  bool queue_pair_failed() {
    return failed_.load(std::memory_order_relaxed) &&
           failed_.exchange(false, std::memory_order_relaxed);
  }
  // Returns whether the adapter was removed.
  bool gone() const { return gone_.load(std::memory_order_relaxed); }

 private:
  struct DestroyChannel {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  };
  struct DestroyId {
    void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
  };
  using EventChannel = std::unique_ptr<rdma_event_channel, DestroyChannel>;
  using Id = std::unique_ptr<rdma_cm_id, DestroyId>;

  // A question that the communication manager works on.
  struct Query {
    Endpoint to;
    Id id;
    Time until{};
  };
  struct Discarded {
    ibv_ah* handle;
    Time at;
  };

  Resolver(const Adapter& adapter, EventChannel channel, int wake, int news)
      : adapter_(adapter), channel_(std::move(channel)), wake_(wake), news_(news) {}

  Result<void> listen(const Settings& settings);
  Id make_id() const;
  int bind(rdma_cm_id& id, uint16_t port) const;
  socklen_t address_of(const Endpoint& at, sockaddr_storage& out) const;
  void run();
  int patience();
  void begin_queries();
  void begin(const Endpoint& to);
  void handle_events();
  void answer_request(rdma_cm_id& request) const;
  bool advance(Query& query, const rdma_cm_event& event);
  void finish(const Query& query, const Destination& found);
  void end_old_queries(Time now);
  ibv_ah* make_handle(const Endpoint& to, ibv_ah_attr attributes) const;
  void handle_adapter_events();
  void note_removal();
  void look_at_queue_pair(Time now);
  void tell() const;
  void destroy_discarded(Time now);

  const Adapter& adapter_;
  EventChannel channel_;
  const int wake_;  // eventfds
  const int news_;
  Id listener_;
  uint16_t service_ = 0;
  std::atomic<ibv_qp*> serves_{nullptr};
  std::atomic<bool> failed_{false};
  std::atomic<bool> gone_{false};
  std::atomic<bool> stop_{false};
  // Used by the thread only.
  std::vector<std::unique_ptr<Query>> queries_;
  Time looked_at_{};  // when the queue pair was last looked at

  std::mutex mutex_;  // of what follows
  std::vector<Endpoint> questions_;
  std::vector<Answer> answers_;
  std::vector<Discarded> discarded_;
  std::atomic<bool> answered_{false};  // whether there are answers

  std::thread thread_;
};

}  // namespace urma::drivers::verbs
