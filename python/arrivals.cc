// SPDX-License-Identifier: Apache-2.0
#include "python/arrivals.h"

#include <new>
#include <string>

#include "python/remote.h"

namespace urma::python {

void Arrivals::open(urma::Device& device, uint32_t receives, uint32_t message_bytes) {
  jfr_.emplace(value_of(unlocked([&] { return device.jfr({.receives = receives}); })));
  message_bytes_ = message_bytes;
  memory_ = std::unique_ptr<std::byte[]>(new std::byte[size_t{receives} * message_bytes]);
  for (uint64_t i = 0; i < receives; ++i) post_receive(i);
}

void Arrivals::post_receive(uint64_t slot) {
  // Tags are larger than 0, because an immediate without a message completes with tag 0. There is a
  // receive slot for each buffer, so `receive` fails only after the device has closed, which
  // polling reports.
  (void)jfr_->receive({memory_.get() + slot * message_bytes_, message_bytes_}, slot + 1);
}

void Arrivals::settle(const Completion& completion) {
  // A device that closes returns the buffers, which `flushed` says.
  if (over() != Status::ok || completion.status == Status::flushed) return;
  ArrivalObject arrival{py::bytes(), completion};
  if (completion.tag != 0) {
    const std::byte* const from = memory_.get() + (completion.tag - 1) * message_bytes_;
    if (completion.ok())
      arrival.data = py::bytes(reinterpret_cast<const char*>(from), completion.bytes);
    post_receive(completion.tag - 1);
  }
  ready_.push_back(std::move(arrival));
}

void Arrivals::settled() { tell_watch("arrived"); }

void Arrivals::refuse_if_over() const {
  refuse_if_foreign();
  if (over() != Status::ok) {
    raise(error(over(), "receive: the Jetty or its device is closed"));
  }
  if (!jfr_) {
    raise(Error{Status::unsupported,
                "receive: this Jetty does not receive. Fix: device.jetty(receives=64)"});
  }
}

py::object Arrivals::take_now() {
  if (ready_.empty()) {
    refuse_if_over();
    return py::none();
  }
  ArrivalObject arrival = std::move(ready_.front());
  ready_.pop_front();
  if (arrival.value.ok()) return py::cast(std::move(arrival));
  const Status status = arrival.value.status;
  raise(error(status, "receive: " + std::string(name(status)) + ": " +
                          std::string(describe(status).meaning)));
}

py::object Arrivals::take(Duration limit) {
  if (ready_.empty()) {
    refuse_if_over();
    wait([this] { return !ready_.empty(); }, limit);
  }
  return take_now();
}

void Arrivals::close() {
  if (!jfr_) {
    if (over() == Status::ok) end(Status::closed);
    return;
  }
  if (foreign()) {
    end(Status::forked);
  } else {
    seize();
    if (over() == Status::ok) end(Status::closed);
    let_go();
    unlocked([this] { jfr_.reset(); });
  }
  tell_watch("close");
}

void define_arrivals(py::module_& module) {
  py::class_<ArrivalObject>(module, "Arrival", "A message or an immediate that arrived.")
      .def_property_readonly("data", [](const ArrivalObject& self) { return self.data; })
      .def_property_readonly("immediate",
                             [](const ArrivalObject& self) -> py::object {
                               if (!self.value.with_immediate) return py::none();
                               return py::int_(self.value.immediate);
                             })
      .def_property_readonly("solicited",
                             [](const ArrivalObject& self) { return self.value.solicited; })
      .def_property_readonly("peer",
                             [](const ArrivalObject& self) { return peer_number(self.value.from); })
      .def_property_readonly(
          "sender",
          [](const ArrivalObject& self) {
            return py::make_tuple(peer_number(self.value.from), number(self.value.from_jetty));
          },
          "The peer and its Jetty, as a key for a dict.")
      .def("__repr__", [](const ArrivalObject& self) {
        std::string text = "<urma.Arrival of " + std::to_string(py::len(self.data)) + " bytes";
        if (self.value.with_immediate)
          text += ", immediate " + std::to_string(self.value.immediate);
        return text + ">";
      });
}

}  // namespace urma::python
