// SPDX-License-Identifier: Apache-2.0
#include "python/device.h"

#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "python/jetty.h"
#include "python/remote.h"
#include "python/segment.h"

namespace urma::python {
namespace {

using py::arg;

// The result of an import.
struct ImportedObject {
  py::object segment;
  py::object jetty;
};

DeviceObject& device_in(const py::object& self) { return py::cast<DeviceObject&>(self); }

uint32_t small(const py::object& object, const char* name, uint64_t most = UINT32_MAX) {
  return static_cast<uint32_t>(integer_of(object, name, 0, most));
}

Duration or_default(const py::object& object, const char* name, Duration otherwise) {
  return object.is_none() ? otherwise : duration_of(object, name);
}

std::unique_ptr<DeviceObject> open_device(const py::object& text, const py::object& threads,
                                          const py::object& operation_timeout,
                                          const py::object& idle_timeout,
                                          const py::object& congestion, bool observable,
                                          const py::object& jetties, const py::object& peers,
                                          const py::object& segments) {
  DeviceOptions options;
  if (!threads.is_none())
    options.threads = static_cast<Threads>(value_of_enumerator(threads, "Threads", "threads"));
  options.operation_timeout =
      or_default(operation_timeout, "operation_timeout", options.operation_timeout);
  options.idle_timeout = or_default(idle_timeout, "idle_timeout", options.idle_timeout);
  options.congestion = text_of(congestion, "congestion");
  options.observable = observable;
  if (!jetties.is_none()) options.limits.jetties = small(jetties, "jetties");
  if (!peers.is_none()) options.limits.peers = small(peers, "peers");
  if (!segments.is_none()) options.limits.segments = small(segments, "segments");
  const std::string name = text_of(text, "device");
  return std::make_unique<DeviceObject>(
      value_of(unlocked([&] { return urma::open(name, options); })));
}

SegmentOptions segment_options(const py::object& rights, const py::object& atomics) {
  SegmentOptions options;
  if (!rights.is_none())
    options.rights = static_cast<Rights>(value_of_enumerator(rights, "Rights", "rights"));
  if (!atomics.is_none()) {
    options.atomics =
        static_cast<AtomicDomain>(value_of_enumerator(atomics, "AtomicDomain", "atomics"));
  }
  return options;
}

std::unique_ptr<SegmentObject> allocate(const py::object& self, const py::object& size,
                                        const py::object& rights, const py::object& atomics) {
  const size_t bytes = integer_of(size, "size", 0, INT64_MAX);
  const SegmentOptions options = segment_options(rights, atomics);
  urma::Device& device = device_in(self).inner();
  return std::make_unique<SegmentObject>(
      self, value_of(unlocked([&] { return device.allocate(bytes, options); })), View(), false);
}

std::unique_ptr<SegmentObject> register_memory(const py::object& self, const py::object& buffer,
                                               const py::object& rights, const py::object& atomics,
                                               bool guarded) {
  SegmentOptions options = segment_options(rights, atomics);
  options.guarded = guarded;
  const bool changes = has(options.rights, Rights::write) || has(options.rights, Rights::atomic);
  View memory(buffer, changes, "buffer");
  const bool read_only = memory.read_only();
  urma::Device& device = device_in(self).inner();
  auto segment =
      value_of(unlocked([&] { return device.register_memory(memory.bytes(), options); }));
  return std::make_unique<SegmentObject>(self, std::move(segment), std::move(memory), read_only);
}

std::unique_ptr<JettyObject> make_jetty(const py::object& self, const py::object& berths,
                                        const py::object& receives, const py::object& message_bytes,
                                        const py::object& inline_bytes,
                                        const py::object& operation_timeout,
                                        const py::object& receiver_timeout,
                                        const py::object& weight, bool urgent,
                                        const py::object& mode, bool in_order, bool chain) {
  JettyOptionsObject options;
  options.works.berths = static_cast<uint32_t>(integer_of(berths, "berths", 1, 32'768));
  options.receives = small(receives, "receives", 32'768);
  options.message_bytes =
      static_cast<uint32_t>(integer_of(message_bytes, "message_bytes", 1, max_send_bytes));
  options.works.inline_bytes = small(inline_bytes, "inline_bytes");
  options.works.operation_timeout = or_default(operation_timeout, "operation_timeout", Duration{});
  options.works.receiver_timeout = duration_of(receiver_timeout, "receiver_timeout");
  options.works.weight = small(weight, "weight");
  options.works.urgent = urgent;
  if (!mode.is_none())
    options.works.mode = static_cast<ServiceMode>(value_of_enumerator(mode, "ServiceMode", "mode"));
  options.works.in_order = in_order;
  options.works.chain = chain;
  return std::make_unique<JettyObject>(self, device_in(self).inner(), options);
}

Audience audience_of(bool anyone, const py::object& eids) {
  Audience audience;
  audience.anyone = anyone;
  if (py::isinstance<py::str>(eids)) refuse_type(eids, "eids", "give a list of addresses");
  for (const auto& each : eids)
    audience.eids.push_back(value_of(parse_address(text_of(each, "an element of eids"))));
  return audience;
}

void publish(const py::object& self, const py::object& name, const py::object& segment,
             const py::object& jetty, bool anyone, const py::object& eids) {
  const std::string text = text_of(name, "name");
  const Audience audience = audience_of(anyone, eids);
  if (!segment.is_none() && !py::isinstance<SegmentObject>(segment))
    refuse_type(segment, "segment", "give a Segment of this device");
  if (!jetty.is_none() && !py::isinstance<JettyObject>(jetty))
    refuse_type(jetty, "jetty", "give a Jetty of this device");
  if (segment.is_none() && jetty.is_none()) {
    refuse(PyExc_TypeError,
           "publish: neither a segment nor a Jetty. Fix: give one of them, or both");
  }
  urma::Device& device = device_in(self).inner();
  Jetty* const inner = jetty.is_none() ? nullptr : &py::cast<JettyObject&>(jetty).inner("publish");
  if (segment.is_none())
    return value_of(unlocked([&] { return device.publish(text, *inner, audience); }));
  value_of(py::cast<SegmentObject&>(segment).with("publish", [&](const Segment& memory) {
    return inner == nullptr ? device.publish(text, memory, audience)
                            : device.publish(text, memory, *inner, audience);
  }));
}

ImportedObject import_name(const py::object& self, const py::object& what,
                           const py::object& timeout) {
  const std::string text = text_of(what, "what");
  DeviceObject& object = device_in(self);
  const auto deadline = duration_of(timeout, "timeout");
  // A wait on this host is made in slices, so that Ctrl-C ends it.
  const bool local = text.starts_with("urma://localhost/");
  const Duration slice = local ? std::chrono::milliseconds(100) : Duration::max();
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const Duration passed = std::chrono::steady_clock::now() - begin;
    const Duration left = passed < deadline ? deadline - passed : Duration{};
    auto found =
        unlocked([&] { return object.inner().import(text, {.limit = std::min(left, slice)}); });
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!found.ok() && found.status() == Status::not_found && left > slice) continue;
    const Imported imported = value_of(std::move(found));
    ImportedObject result{py::none(), py::none()};
    if (imported.segment.bytes > 0)
      result.segment = py::cast(RemoteSegmentObject{self, imported.segment});
    if (imported.jetty) result.jetty = py::cast(RemoteJettyObject{self, imported.jetty});
    return result;
  }
}

py::dict statistics(DeviceObject& self) {
  const Statistics all = value_of(unlocked([&] { return self.inner().stats(); }));
  py::dict result;
  for (const Metric& metric : all_metrics()) {
    const uint64_t value = all.*metric.value;
    if (value == UINT64_MAX) continue;
    result[py::str(metric.name.data(), metric.name.size())] = value;
  }
  return result;
}

}  // namespace

DeviceObject::~DeviceObject() {
  unlocked([this] { const urma::Device gone(std::move(device_)); });
}

urma::Device& DeviceObject::inner_here(const char* call) {
  refuse_if_forked(born_, call);
  return device_;
}

void DeviceObject::close() {
  closed_ = true;
  unlocked([this] { device_.close(); });
}

py::object DeviceObject::next_event() {
  refuse_if_forked(born_, "device.events");
  Event event;
  if (device_.events(std::span(&event, 1)) == 0) return py::none();
  return py::cast(event);
}

namespace {

using DeviceClass = py::class_<DeviceObject>;

void define_making(DeviceClass& type) {
  const py::none none;
  type.def("allocate", allocate, arg("size"), py::kw_only(), arg("rights") = none,
           arg("atomics") = none, "Allocates and registers zeroed memory.")
      .def("register", register_memory, arg("buffer"), py::kw_only(), arg("rights") = none,
           arg("atomics") = none, arg("guarded") = false,
           "Registers the memory of an object, without a copy.")
      .def("jetty", make_jetty, py::kw_only(), arg("berths") = 128, arg("receives") = 0,
           arg("message_bytes") = max_send_bytes, arg("inline_bytes") = 64,
           arg("operation_timeout") = none, arg("receiver_timeout") = none, arg("weight") = 1,
           arg("urgent") = false, arg("mode") = none, arg("in_order") = false, arg("chain") = false,
           "Makes a Jetty.")
      .def("publish", publish, arg("name"), arg("segment") = none, arg("jetty") = none,
           py::kw_only(), arg("anyone") = false, arg("eids") = py::tuple(),
           "Publishes a segment, a Jetty or both under a name.")
      .def(
          "unpublish",
          [](DeviceObject& self, const py::object& name) {
            const std::string text = text_of(name, "name");
            value_of(unlocked([&] { return self.inner().unpublish(text); }));
          },
          arg("name"), "Ends the publication of a name.")
      .def("import_", import_name, arg("what"), arg("timeout") = 2.0,
           "Imports what is published under a name, or a descriptor.");
}

void define_paths(DeviceClass& type) {
  type.def(
          "add_path",
          [](DeviceObject& self, const py::object& device) {
            const std::string text = text_of(device, "device");
            return to_string(value_of(unlocked([&] { return self.inner().add_path(text); })));
          },
          arg("device"), "Adds a path to a device that was opened as paths():...")
      .def(
          "remove_path",
          [](DeviceObject& self, const py::object& address) {
            const Endpoint place = value_of(parse_endpoint(text_of(address, "address")));
            value_of(unlocked([&] { return self.inner().remove_path(place); }));
          },
          arg("address"), "Removes the path with this address.");
}

void define_properties(DeviceClass& type) {
  type.def_property_readonly("closed", [](const DeviceObject& self) { return self.closed(); })
      .def_property_readonly("address",
                             [](DeviceObject& self) { return to_string(self.inner().endpoint()); })
      .def_property_readonly("addresses",
                             [](DeviceObject& self) {
                               std::vector<std::string> all;
                               for (const Endpoint& each : self.inner().endpoints())
                                 all.push_back(to_string(each));
                               return all;
                             })
      .def_property_readonly("eid",
                             [](DeviceObject& self) { return to_string(self.inner().eid()); })
      .def_property_readonly("datagram_bytes",
                             [](DeviceObject& self) { return self.inner().datagram_bytes(); })
      .def_property_readonly("description",
                             [](DeviceObject& self) { return self.inner().description(); })
      .def("stats", statistics, "Returns the counters of the device, by name.")
      .def("events",
           [](const py::object& self) {
             return py::module_::import("urma._aio").attr("Events")(self);
           })
      .def("next_event", &DeviceObject::next_event, "Takes the oldest event; None without one.")
      .def(
          "_events_descriptor",
          [](DeviceObject& self) { return value_of(self.inner_here("device.events").events_fd()); })
      .def("close", &DeviceObject::close, "Ends everything that was made from the device.")
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](DeviceObject& self, const py::args&) { self.close(); })
      .def("__repr__", [](DeviceObject& self) {
        return self.closed() ? std::string("<urma.Device closed>")
                             : "<urma.Device at " + to_string(self.inner().endpoint()) + ">";
      });
}

void define_values(py::module_& module) {
  py::class_<ImportedObject>(module, "Imported", "What a name or a descriptor names.")
      .def_property_readonly("segment", [](const ImportedObject& self) { return self.segment; })
      .def_property_readonly("jetty", [](const ImportedObject& self) { return self.jetty; });
  py::class_<Event>(module, "Event", "What happened to a device, beside completions.")
      .def_property_readonly(
          "kind",
          [](const Event& self) { return enumerator("EventKind", static_cast<int>(self.kind)); })
      .def_property_readonly(
          "status",
          [](const Event& self) { return enumerator("Status", static_cast<int>(self.status)); })
      .def_readonly("count", &Event::count)
      .def_readonly("path", &Event::path)
      .def_property_readonly("jetty", [](const Event& self) { return number(self.jetty); })
      .def_property_readonly("peer", [](const Event& self) { return peer_number(self.peer); })
      .def_property_readonly("address", [](const Event& self) { return to_string(self.from); })
      .def("__repr__",
           [](const Event& self) { return "<urma.Event " + std::string(name(self.kind)) + ">"; });
}

}  // namespace

void define_device(py::module_& module) {
  DeviceClass type(module, "Device", "Reaches peers over one medium.");
  define_making(type);
  define_paths(type);
  define_properties(type);
  define_values(module);
  const py::none none;
  module.def("open", open_device, arg("device") = std::string(default_device), py::kw_only(),
             arg("threads") = none, arg("operation_timeout") = none, arg("idle_timeout") = none,
             arg("congestion") = "", arg("observable") = true, arg("jetties") = none,
             arg("peers") = none, arg("segments") = none, "Opens a device.");
}

}  // namespace urma::python
