// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "drivers/verbs/reliable_queue.h"

namespace urma::drivers::verbs {

// Makes and connects ends in one thread, and destroys them in another: connecting an end to a host
// that does not answer may take a second, and the destruction of other ends must not wait for that.
// Ends are named by indices, which the caller gives out.
class EndMaker {
 public:
  static constexpr uint32_t most = 512;

  struct Result {
    enum class What : uint8_t { made, connected, failed, destroyed };
    uint32_t end = 0;
    What what = What::failed;
    RemoteAccess::Description own{};
  };

  // Both outlive this object.
  EndMaker(const Adapter& adapter, ibv_cq& completions);
  ~EndMaker();

  // These return at once. Each has one result, except that `destroy` cancels earlier calls for the
  // same end. The caller uses the index again only after the result `destroyed`.
  void make(uint32_t end, bool opens) {
    add({.end = end, .what = Order::What::make, .opens = opens});
  }
  void connect(uint32_t end, const RemoteAccess::Description& other) {
    add({.end = end, .what = Order::What::connect, .other = other});
  }
  void destroy(uint32_t end) { add({.end = end, .what = Order::What::destroy}); }
  // Appends the results since the last call.
  void take(std::vector<Result>& out);
  // Returns a descriptor that becomes readable when there are results.
  int news() const { return news_; }
  void clear_news() const;

  // Returns the end, after the result `connected` and before the call of `destroy`.
  const ReliableQueue& at(uint32_t end) const { return *ends_[end]; }

 private:
  struct Order {
    enum class What : uint8_t { make, connect, destroy };
    uint32_t end = 0;
    What what = What::make;
    bool opens = false;
    RemoteAccess::Description other{};
  };

  static constexpr uint32_t none = UINT32_MAX;

  void add(const Order& order);
  bool take(bool destroys, Order& order);
  void run(bool destroys);
  Result carry_out(const Order& order);

  const Adapter& adapter_;
  ibv_cq& completions_;
  const int news_;  // an eventfd
  std::array<std::optional<ReliableQueue>, most> ends_;

  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::vector<Order> orders_;
  std::array<uint32_t, 2> busy_{none, none};  // the end that each thread works on
  std::vector<Result> results_;
  bool stop_ = false;
  std::atomic<bool> told_{false};  // whether there are results

  std::array<std::thread, 2> threads_;
};

}  // namespace urma::drivers::verbs
