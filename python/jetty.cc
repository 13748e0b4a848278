// SPDX-License-Identifier: Apache-2.0
#include "python/jetty.h"

#include <pybind11/stl.h>

#include <string>

#include "python/lane.h"
#include "python/remote.h"

namespace urma::python {
namespace {

using py::arg;

// The options that all works have.
struct WorkOptions {
  py::object tag;
  py::object order;
  py::object fence;
};

// Adds the memory of an argument to a work: one object, or a list or tuple of them.
void add_memory(WorkState& state, py::handle data, bool writable, const char* name) {
  const bool several = PyList_Check(data.ptr()) || PyTuple_Check(data.ptr());
  if (!several) {
    state.memory.emplace_back(data, writable, name);
    const auto bytes = state.memory.back().bytes();
    state.work.buffer = {bytes.data(), bytes.size()};
    return;
  }
  const auto list = py::reinterpret_borrow<py::sequence>(data);
  if (list.size() > max_buffers) {
    refuse(PyExc_ValueError, std::string(name) + " has " + std::to_string(list.size()) +
                                 " buffers. Fix: give at most " + std::to_string(max_buffers));
  }
  for (const auto& each : list) {
    state.memory.emplace_back(each, writable, name);
    const auto bytes = state.memory.back().bytes();
    state.pieces.push_back({bytes.data(), bytes.size()});
  }
  state.work.buffers = state.pieces;
}

// Memory that is empty may be null in Python, which a work of the library must not be.
void name_empty_memory(Work& work) {
  static std::byte nothing;
  if (work.buffers.empty() && work.buffer.bytes == 0) work.buffer.data = &nothing;
}

void add_options(WorkState& state, const WorkOptions& options) {
  state.tag = options.tag;
  if (!options.order.is_none())
    state.work.order = static_cast<Order>(value_of_enumerator(options.order, "Order", "order"));
  if (!options.fence.is_none())
    state.work.fence = static_cast<Fence>(value_of_enumerator(options.fence, "Fence", "fence"));
}

void add_immediate(Work& work, const py::object& immediate, bool solicited) {
  if (!immediate.is_none()) work.immediate(word_of(immediate, "immediate", 8));
  work.solicits = solicited;
}

// notify=(segment, offset, value)
void add_notification(Work& work, const py::object& notify, const py::object& device) {
  if (notify.is_none()) return;
  if (!PyTuple_Check(notify.ptr()) || py::len(notify) != 3)
    refuse_type(notify, "notify", "give a tuple (segment, offset, value)");
  if (work.with_immediate || work.target) {
    refuse(PyExc_ValueError,
           "notify cannot be combined with to and immediate. Fix: post two works, of which the "
           "second one has an order");
  }
  const auto parts = py::reinterpret_borrow<py::tuple>(notify);
  work.notify(segment_of(parts[0], device, "notify[0]"),
              integer_of(parts[1], "notify[1]", 0, UINT64_MAX),
              word_of(parts[2], "notify[2]", notify_bytes));
}

JettyObject& jetty_in(const py::object& self) { return py::cast<JettyObject&>(self); }

// Lets the library copy few bytes, so that the work borrows no memory.
void copy_if_small(JettyObject& jetty, WorkState& state) {
  size_t bytes = state.work.buffer.bytes;
  for (const Buffer& piece : state.pieces) bytes += piece.bytes;
  if (bytes <= jetty.inline_bytes()) state.work.inline_data();
}

WorkObject post(const py::object& self, SharedWork state) {
  name_empty_memory(state->work);
  jetty_in(self).works().post(state);
  if (state->work.copied && state->posted) state->memory.clear();
  return {self, std::move(state)};
}

WorkObject post_write(const py::object& self, const py::object& data, const py::object& segment,
                      const py::object& offset, const py::object& to, const py::object& immediate,
                      const py::object& notify, bool solicited, const py::object& tag,
                      const py::object& order, const py::object& fence) {
  JettyObject& jetty = jetty_in(self);
  auto state = std::make_shared<WorkState>();
  state->work = write(std::span<const std::byte>(), segment_of(segment, jetty.device(), "segment"),
                      integer_of(offset, "offset", 0, UINT64_MAX));
  add_memory(*state, data, false, "data");
  if (!to.is_none()) state->work.to(jetty_of(to, jetty.device(), "to"));
  add_immediate(state->work, immediate, solicited);
  if (!immediate.is_none() && to.is_none()) {
    refuse(PyExc_ValueError,
           "immediate needs the Jetty at which it arrives. Fix: give to=, the jetty of "
           "device.import_()");
  }
  add_notification(state->work, notify, jetty.device());
  add_options(*state, {tag, order, fence});
  copy_if_small(jetty, *state);
  return post(self, std::move(state));
}

WorkObject post_read(const py::object& self, const py::object& into, const py::object& segment,
                     const py::object& offset, const py::object& tag, const py::object& order,
                     const py::object& fence) {
  JettyObject& jetty = jetty_in(self);
  auto state = std::make_shared<WorkState>();
  state->work = read(std::span<std::byte>(), segment_of(segment, jetty.device(), "segment"),
                     integer_of(offset, "offset", 0, UINT64_MAX));
  add_memory(*state, into, true, "into");
  add_options(*state, {tag, order, fence});
  return post(self, std::move(state));
}

WorkObject post_send(const py::object& self, const py::object& data, const py::object& to,
                     const py::object& immediate, bool solicited, const py::object& tag,
                     const py::object& order, const py::object& fence) {
  JettyObject& jetty = jetty_in(self);
  auto state = std::make_shared<WorkState>();
  state->work = send(std::span<const std::byte>(), jetty_of(to, jetty.device(), "to"));
  add_memory(*state, data, false, "data");
  add_immediate(state->work, immediate, solicited);
  add_options(*state, {tag, order, fence});
  copy_if_small(jetty, *state);
  return post(self, std::move(state));
}

// The word that an atomic changes.
struct Word {
  py::object segment;
  py::object offset;
  py::object size;
};

SharedWork make_atomic(const py::object& self, Atomic what, const Word& word,
                       const py::object& operand, const char* name) {
  const uint64_t bytes = integer_of(word.size, "size", 1, most_atomic_bytes);
  auto state = std::make_shared<WorkState>();
  state->work = detail::atomic_of(
      what, bytes, segment_of(word.segment, jetty_in(self).device(), "segment"),
      integer_of(word.offset, "offset", 0, UINT64_MAX), word_of(operand, name, bytes));
  return state;
}

template <Atomic what>
WorkObject post_atomic(const py::object& self, const py::object& segment, const py::object& offset,
                       const py::object& operand, const py::object& size, const py::object& tag,
                       const py::object& order, const py::object& fence) {
  auto state = make_atomic(self, what, {segment, offset, size}, operand, "operand");
  add_options(*state, {tag, order, fence});
  return post(self, std::move(state));
}

WorkObject post_compare_swap(const py::object& self, const py::object& segment,
                             const py::object& offset, const py::object& expected,
                             const py::object& desired, const py::object& size,
                             const py::object& tag, const py::object& order,
                             const py::object& fence) {
  auto state = make_atomic(self, Atomic::compare_swap, {segment, offset, size}, desired, "desired");
  state->work.expected_value = word_of(expected, "expected", state->work.buffer.bytes);
  add_options(*state, {tag, order, fence});
  return post(self, std::move(state));
}

template <Atomic what>
WorkObject post_update(const py::object& self, const py::object& segment, const py::object& offset,
                       const py::object& update, const py::object& operand, const py::object& size,
                       const py::object& tag, const py::object& order, const py::object& fence) {
  auto state = make_atomic(self, what, {segment, offset, size}, operand, "operand");
  state->work.update = static_cast<Update>(value_of_enumerator(update, "Update", "update"));
  add_options(*state, {tag, order, fence});
  return post(self, std::move(state));
}

}  // namespace

JettyObject::JettyObject(py::object device_object, urma::Device& device,
                         const JettyOptionsObject& options)
    : device_(std::move(device_object)), inline_bytes_(options.works.inline_bytes) {
  if (options.receives > 0) arrivals_.open(device, options.receives, options.message_bytes);
  JettyOptions works = options.works;
  works.receives_from = arrivals_.jfr();
  jetty_.emplace(value_of(unlocked([&] { return device.jetty(works); })));
  works_.open(*jetty_, works.berths);
}

JettyObject::~JettyObject() { close(); }

Jetty& JettyObject::inner(const char* call) {
  refuse_if_forked(born_, call);
  if (closed_) raise(error(Status::closed, std::string(call) + ": the Jetty is closed"));
  return *jetty_;
}

void JettyObject::close() {
  if (std::exchange(closed_, true)) return;
  works_.close();
  arrivals_.close();
  unlocked([this] { jetty_.reset(); });
}

RemoteJetty jetty_of(py::handle object, const py::object& device, const char* name) {
  if (py::isinstance<RemoteJettyObject>(object)) {
    const auto& remote = py::cast<const RemoteJettyObject&>(object);
    if (remote.device.is(device)) return remote.value;
    refuse(PyExc_ValueError, std::string(name) +
                                 " was imported by another device. Fix: import it by the device "
                                 "of this Jetty");
  }
  if (py::isinstance<JettyObject>(object)) {
    auto& own = py::cast<JettyObject&>(object);
    if (own.device().is(device)) return own.inner(name).local();
    refuse(PyExc_ValueError,
           std::string(name) + " is a Jetty of another device. Fix: import its descriptor");
  }
  if (object.is_none()) {
    refuse(PyExc_TypeError, std::string(name) +
                                " is None: nothing was published there, or no Jetty was given. "
                                "Fix: publish a Jetty, then import it");
  }
  refuse_type(object, name, "give the jetty of device.import_(), or a Jetty of this device");
}

namespace {

using JettyClass = py::class_<JettyObject>;

// The names of atomics in Python are those of urma/core/atomic_works.h.
template <Atomic what>
void define_atomic(JettyClass& type, const char* name, const char* text) {
  type.def(name, post_atomic<what>, arg("segment"), arg("offset"), arg("operand"), py::kw_only(),
           arg("size") = 8, arg("tag") = py::none(), arg("order") = py::none(),
           arg("fence") = py::none(), text);
}

template <Atomic what>
void define_update(JettyClass& type, const char* name, const char* text) {
  type.def(name, post_update<what>, arg("segment"), arg("offset"), arg("update"), arg("operand"),
           py::kw_only(), arg("size") = 8, arg("tag") = py::none(), arg("order") = py::none(),
           arg("fence") = py::none(), text);
}

void define_posts(JettyClass& type) {
  const py::none none;
  type.def("write", post_write, arg("data"), arg("segment"), arg("offset") = 0, py::kw_only(),
           arg("to") = none, arg("immediate") = none, arg("notify") = none,
           arg("solicited") = false, arg("tag") = none, arg("order") = none, arg("fence") = none,
           "Posts a write of data to a segment.");
  type.def("read", post_read, arg("into"), arg("segment"), arg("offset") = 0, py::kw_only(),
           arg("tag") = none, arg("order") = none, arg("fence") = none,
           "Posts a read from a segment into writable memory.");
  type.def("send", post_send, arg("data"), arg("to"), py::kw_only(), arg("immediate") = none,
           arg("solicited") = false, arg("tag") = none, arg("order") = none, arg("fence") = none,
           "Posts a message to a Jetty.");
  define_atomic<Atomic::fetch_add>(type, "fetch_add", "word += operand");
  define_atomic<Atomic::fetch_sub>(type, "fetch_sub", "word -= operand");
  define_atomic<Atomic::fetch_and>(type, "fetch_and", "word &= operand");
  define_atomic<Atomic::fetch_or>(type, "fetch_or", "word |= operand");
  define_atomic<Atomic::fetch_xor>(type, "fetch_xor", "word ^= operand");
  define_atomic<Atomic::swap>(type, "swap", "word = operand");
  define_update<Atomic::load>(type, "atomic_load", "Updates a word, and fetches its old value.");
  define_update<Atomic::store>(type, "atomic_store", "Updates a word.");
  type.def("compare_swap", post_compare_swap, arg("segment"), arg("offset"), arg("expected"),
           arg("desired"), py::kw_only(), arg("size") = 8, arg("tag") = none, arg("order") = none,
           arg("fence") = none, "word = desired, if the word equals expected.");
}

void define_names(JettyClass& type) {
  type.def_property_readonly("device", [](const JettyObject& self) { return self.device(); })
      .def_property_readonly("closed", [](const JettyObject& self) { return self.closed(); })
      .def_property_readonly("outstanding",
                             [](JettyObject& self) { return self.works().outstanding(); })
      .def_property_readonly("id",
                             [](JettyObject& self) { return number(self.inner("jetty.id").id()); })
      .def_property_readonly(
          "descriptor",
          [](JettyObject& self) { return self.inner("jetty.descriptor").descriptor(); },
          "The Jetty as one line of text, which contains its token.")
      .def_property_readonly(
          "local",
          [](JettyObject& self) {
            return RemoteJettyObject{self.device(), self.inner("jetty.local").local()};
          })
      .def("__repr__", [](JettyObject& self) {
        return self.closed()
                   ? std::string("<urma.Jetty closed>")
                   : "<urma.Jetty " + std::to_string(number(self.inner("jetty").id())) + ">";
      });
}

// _aio.py uses these methods. `arriving` selects the queue.
Queue& queue_of(JettyObject& self, bool arriving) {
  if (arriving) return self.arrivals();
  return self.works();
}

void define_for_event_loops(JettyClass& type) {
  type.def("_turn", [](JettyObject& self,
                       bool arriving) { return static_cast<int>(queue_of(self, arriving).turn()); })
      .def("_poll",
           [](JettyObject& self, bool arriving) { return queue_of(self, arriving).poll_once(); })
      .def("_descriptor",
           [](JettyObject& self, bool arriving) { return queue_of(self, arriving).descriptor(); })
      .def("_attach", [](JettyObject& self, bool arriving,
                         py::object watch) { queue_of(self, arriving).attach(std::move(watch)); })
      .def("_watch",
           [](JettyObject& self, bool arriving) { return queue_of(self, arriving).watch(); })
      .def("_take", [](JettyObject& self) { return self.arrivals().take_now(); });
}

void define_control(JettyClass& type) {
  type.def(
          "receive",
          [](JettyObject& self, const py::object& timeout) {
            py::object arrival = self.arrivals().take(duration_of(timeout, "timeout"));
            if (arrival.is_none()) {
              raise(error(Status::timed_out, "receive: nothing arrived in the time given"));
            }
            return arrival;
          },
          arg("timeout") = py::none(), "Waits for the next message or immediate.")
      .def(
          "drain",
          [](JettyObject& self, const py::object& timeout) {
            self.works().drain(duration_of(timeout, "timeout"));
          },
          arg("timeout") = py::none(), "Waits until all works have ended.")
      .def(
          "cancel", [](JettyObject& self) { self.works().cancel_all(); },
          "Ends all works. The Jetty can be used afterwards.")
      .def("close", &JettyObject::close, "Ends all works and the Jetty.")
      .def("arrivals",
           [](const py::object& self) {
             return py::module_::import("urma._aio").attr("Arrivals")(self);
           })
      .def(
          "lane",
          [](JettyObject& self, const py::object& segment) {
            Jetty& jetty = self.inner("jetty.lane");
            const RemoteSegment remote = segment_of(segment, self.device(), "segment");
            return std::make_unique<LaneObject>(
                self.device(), value_of(unlocked([&] { return jetty.lane(remote); })));
          },
          arg("segment"), "Opens a lane to a mapped segment, for this thread.")
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](JettyObject& self, const py::args&) { self.close(); });
}

}  // namespace

void define_jetty(py::module_& module) {
  JettyClass type(module, "Jetty",
                  "The queue to which works are posted and at which messages arrive.");
  define_posts(type);
  define_names(type);
  define_for_event_loops(type);
  define_control(type);
  py::class_<RemoteJettyObject>(module, "RemoteJetty", "A Jetty to which works can send.")
      .def_property_readonly("device", [](const RemoteJettyObject& self) { return self.device; })
      .def_property_readonly(
          "peer", [](const RemoteJettyObject& self) { return peer_number(self.value.peer); })
      .def("__repr__", [](const RemoteJettyObject& self) {
        return "<urma.RemoteJetty " + std::to_string(number(self.value.id)) + ">";
      });
}

}  // namespace urma::python
