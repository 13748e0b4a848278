// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "python/queue.h"

namespace urma::python {

// A work of a Jetty, from its post until no object of Python refers to it. It holds the memory that
// the library borrows until the work has ended.
struct WorkState {
  Work work;
  std::vector<View> memory;
  std::vector<Buffer> pieces;  // of a work with several buffers
  py::object tag;
  std::vector<py::object> callbacks;
  Completion completion;
  bool posted = false;
  bool done = false;
};
using SharedWork = std::shared_ptr<WorkState>;

// The error of a work that failed.
Error failure_of(const WorkState& work);

// The works of a Jetty. A work that finds no berth vacant waits here; works are posted in order.
class Works final : public Queue {
 public:
  Works() : Queue("jetty") {}
  ~Works() override = default;

  // The Jetty must outlive `close`.
  void open(Jetty& jetty, uint32_t berths);
  // Posts the work, or lets it wait for a berth.
  void post(const SharedWork& work);
  // Ends a work that waits for a berth. Returns false if the work was posted or has ended.
  bool cancel(const SharedWork& work);
  // Waits until all works have ended. Raises the failure of a work to which no object refers.
  void drain(Duration limit);
  // Ends all works.
  void cancel_all();
  // Ends all works; afterwards the library's Jetty is not used any longer.
  void close();
  // Returns how many works have not ended.
  size_t outstanding() const { return berths_.size() - vacant_.size() + waiting_.size(); }

 protected:
  size_t poll(std::span<Completion> out) override { return jetty_->poll(out); }
  std::span<const Completion> sleep(Duration limit) override { return jetty_->wait(limit); }
  bool arm() override { return jetty_->arm(); }
  Result<int> make_descriptor() override { return jetty_->fd(); }
  void settle(const Completion& completion) override;
  void settled() override;

 private:
  static constexpr size_t most_failures = 64;

  bool post_now(const SharedWork& work);
  void post_waiting();
  void finish(SharedWork work, const Completion& completion);
  void fail_all(Status status);
  // For the thread that polls.
  void flush_all();

  Jetty* jetty_ = nullptr;
  bool closing_ = false;
  std::vector<SharedWork> berths_;  // by the tag of the posted work
  std::vector<uint32_t> vacant_;
  std::deque<SharedWork> waiting_;
  std::vector<SharedWork> ended_;      // since the last `settled`
  std::vector<SharedWork> forgotten_;  // failures that no object can raise
};

// A work, as an object of Python.
struct WorkObject {
  py::object jetty;  // which is alive while works of it are
  SharedWork state;
};

struct CompletionObject {
  Completion value;
  py::object tag;
};

void define_works(py::module_& module);

}  // namespace urma::python
