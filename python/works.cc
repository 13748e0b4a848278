// SPDX-License-Identifier: Apache-2.0
#include "python/works.h"

#include <algorithm>
#include <string>

#include "python/jetty.h"

namespace urma::python {
namespace {

const char* name_of(const Work& work) {
  switch (work.operation) {
    case Operation::write:
      return "write";
    case Operation::read:
      return "read";
    case Operation::send:
      return "send";
    case Operation::atomic:
      return "atomic";
    case Operation::receive:
      break;
  }
  return "work";
}

size_t bytes_of(const Work& work) {
  if (work.buffers.empty()) return work.buffer.bytes;
  size_t sum = 0;
  for (const Buffer& piece : work.buffers) sum += piece.bytes;
  return sum;
}

}  // namespace

Error failure_of(const WorkState& work) {
  const Status status = work.completion.status;
  std::string text = name_of(work.work);
  text += " of " + std::to_string(bytes_of(work.work)) + " bytes";
  if (work.work.operation != Operation::send)
    text += " at offset " + std::to_string(work.work.offset);
  text += ": ";
  text += name(status);
  text += ": ";
  std::string_view meaning = describe(status).meaning;
  if (meaning.ends_with('.')) meaning.remove_suffix(1);
  text += meaning;
  return error(status, std::move(text));
}

void Works::open(Jetty& jetty, uint32_t berths) {
  jetty_ = &jetty;
  berths_.resize(berths);
  for (uint32_t i = berths; i > 0; --i) vacant_.push_back(i - 1);
}

void Works::post(const SharedWork& work) {
  refuse_if_foreign();
  if (closing_ || over() != Status::ok) {
    raise(error(closing_ ? Status::closed : over(),
                std::string(name_of(work->work)) + ": the Jetty is closed"));
  }
  if (waiting_.empty() && !vacant_.empty()) {
    if (post_now(work)) return;
    // The device has ended, which a poll reports.
    waiting_.push_back(work);
    poll_once();
    return;
  }
  waiting_.push_back(work);
  poll_once();
}

bool Works::post_now(const SharedWork& work) {
  const uint32_t number = vacant_.back();
  work->work.tag_value = number;
  if (jetty_->post(work->work) == 0) return false;
  vacant_.pop_back();
  work->posted = true;
  berths_[number] = work;
  return true;
}

void Works::post_waiting() {
  while (!closing_ && !waiting_.empty() && !vacant_.empty()) {
    if (!post_now(waiting_.front())) return;
    waiting_.pop_front();
  }
}

bool Works::cancel(const SharedWork& work) {
  const auto found = std::find(waiting_.begin(), waiting_.end(), work);
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  finish(work, {.status = Status::flushed, .operation = work->work.operation, .from = {}});
  settled();
  return true;
}

void Works::settle(const Completion& completion) {
  if (over() != Status::ok) return fail_all(over());
  const auto number = static_cast<uint32_t>(completion.tag);
  SharedWork work = std::exchange(berths_[number], nullptr);
  vacant_.push_back(number);
  finish(std::move(work), completion);
  post_waiting();
}

void Works::finish(SharedWork work, const Completion& completion) {
  work->completion = completion;
  work->done = true;
  // This is the last reference, so no object of Python can raise the failure.
  const bool forgotten = !completion.ok() && work.use_count() == 1;
  if (forgotten && forgotten_.size() < most_failures) forgotten_.push_back(work);
  ended_.push_back(std::move(work));
}

void Works::settled() {
  // Objects that are released here may run code of Python, which may call this Jetty.
  for (const SharedWork& work : std::exchange(ended_, {})) {
    const auto memory = std::exchange(work->memory, {});
    for (const py::object& callback : std::exchange(work->callbacks, {})) {
      try {
        callback();
      } catch (py::error_already_set& raised) {
        raised.discard_as_unraisable("a callback of a work");
      }
    }
  }
}

void Works::fail_all(Status status) {
  for (uint32_t i = 0; i < berths_.size(); ++i) {
    SharedWork work = std::exchange(berths_[i], nullptr);
    if (work == nullptr) continue;
    vacant_.push_back(i);
    const Operation operation = work->work.operation;
    finish(std::move(work), {.status = status, .operation = operation, .from = {}});
  }
  for (SharedWork& work : std::exchange(waiting_, {})) {
    const Operation operation = work->work.operation;
    finish(std::move(work), {.status = status, .operation = operation, .from = {}});
  }
}

void Works::drain(Duration limit) {
  if (!wait([this] { return outstanding() == 0; }, limit) && over() == Status::ok) {
    raise(error(Status::timed_out, "drain: " + std::to_string(outstanding()) +
                                       " works have not ended in the time given"));
  }
  if (const auto failed = std::exchange(forgotten_, {}); !failed.empty()) {
    raise(failure_of(*failed.front()));
  }
}

void Works::flush_all() {
  for (SharedWork& work : std::exchange(waiting_, {})) {
    const Operation operation = work->work.operation;
    finish(std::move(work), {.status = Status::flushed, .operation = operation, .from = {}});
  }
  if (vacant_.size() == berths_.size()) return;
  (void)unlocked([this] { return jetty_->flush(); });
  // If another thread is closing the device, its completions come soon.
  while (vacant_.size() < berths_.size() && over() == Status::ok) {
    pass(std::chrono::milliseconds(10));
  }
}

void Works::cancel_all() {
  refuse_if_foreign();
  if (closing_ || over() != Status::ok) return;
  seize();
  if (!closing_) {
    flush_all();
    (void)unlocked([this] { return jetty_->reset(); });
  }
  let_go();
  settled();
}

void Works::close() {
  if (jetty_ == nullptr || std::exchange(closing_, true)) return;
  if (foreign()) {
    end(Status::forked);
    fail_all(over());
    return settled();
  }
  seize();
  if (over() == Status::ok) flush_all();
  end(Status::closed);
  let_go();
  settled();
  tell_watch("close");
}

namespace {

CompletionObject completion_of(const WorkState& work) { return {work.completion, work.tag}; }

// Returns the completion of a work that has ended, or raises its failure.
CompletionObject result_of(const WorkState& work) {
  if (!work.completion.ok()) raise(failure_of(work));
  return completion_of(work);
}

CompletionObject wait_for(const WorkObject& self, const py::object& timeout) {
  const Duration limit = duration_of(timeout, "timeout");
  const WorkState& work = *self.state;
  if (!work.done) {
    Works& works = py::cast<JettyObject&>(self.jetty).works();
    works.wait([&] { return work.done; }, limit);
    if (!work.done) {
      raise(error(Status::timed_out, std::string(name_of(work.work)) +
                                         ": it has not ended in the time given, and continues"));
    }
  }
  return result_of(work);
}

void define_completion(py::module_& module) {
  py::class_<CompletionObject>(module, "Completion", "How a work ended.")
      .def_property_readonly("status",
                             [](const CompletionObject& self) {
                               return enumerator("Status", static_cast<int>(self.value.status));
                             })
      .def_property_readonly("ok", [](const CompletionObject& self) { return self.value.ok(); })
      .def_property_readonly("operation",
                             [](const CompletionObject& self) {
                               return enumerator("Operation",
                                                 static_cast<int>(self.value.operation));
                             })
      .def_property_readonly("bytes", [](const CompletionObject& self) { return self.value.bytes; })
      .def_property_readonly(
          "fetched", [](const CompletionObject& self) { return self.value.fetched(); },
          "The value that the word had before an atomic, as an unsigned integer.")
      .def_property_readonly("tag", [](const CompletionObject& self) { return self.tag; })
      .def("__repr__", [](const CompletionObject& self) {
        return "<urma.Completion " + std::string(name(self.value.status)) + ">";
      });
}

}  // namespace

void define_works(py::module_& module) {
  define_completion(module);
  py::class_<WorkObject>(module, "Work", "A work that was posted.")
      .def_property_readonly("jetty", [](const WorkObject& self) { return self.jetty; })
      .def_property_readonly("tag", [](const WorkObject& self) { return self.state->tag; })
      .def_property_readonly("done", [](const WorkObject& self) { return self.state->done; })
      .def_property_readonly(
          "completion",
          [](const WorkObject& self) -> py::object {
            if (!self.state->done) return py::none();
            return py::cast(completion_of(*self.state));
          },
          "How the work ended, or None.")
      .def("wait", wait_for, py::arg("timeout") = py::none(),
           "Waits until the work has ended, and returns its Completion; raises its failure.")
      .def(
          "cancel",
          [](const WorkObject& self) {
            return py::cast<JettyObject&>(self.jetty).works().cancel(self.state);
          },
          "Ends a work that still waits for a berth. Returns whether it did.")
      .def(
          "add_done_callback",
          [](const WorkObject& self, const py::object& callback) {
            if (PyCallable_Check(callback.ptr()) == 0)
              refuse_type(callback, "callback", "give a function without arguments");
            if (self.state->done) {
              callback();
            } else {
              self.state->callbacks.push_back(callback);
            }
          },
          py::arg("callback"), "Calls the function when the work has ended.")
      .def("__await__",
           [](const py::object& self) {
             return py::module_::import("urma._aio").attr("outcome")(self).attr("__await__")();
           })
      .def("__repr__", [](const WorkObject& self) {
        const WorkState& work = *self.state;
        return "<urma.Work " + std::string(name_of(work.work)) + ": " +
               (work.done ? std::string(name(work.completion.status)) : "not done") + ">";
      });
}

}  // namespace urma::python
