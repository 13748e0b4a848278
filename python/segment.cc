// SPDX-License-Identifier: Apache-2.0
#include "python/segment.h"

#include "python/dlpack.h"
#include "python/remote.h"

namespace urma::python {
namespace {

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto& segment = py::cast<SegmentObject&>(py::handle(self));
  view->obj = nullptr;
  if (!segment.has_memory()) {
    PyErr_SetString(PyExc_BufferError,
                    "segment: it is unregistered, so it no longer holds the memory of the object "
                    "that was registered. Fix: use that object");
    return -1;
  }
  const auto bytes = segment.bytes();
  if (PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                        segment.read_only() ? 1 : 0, flags) != 0) {
    return -1;
  }
  segment.view_begins();
  return 0;
}

void release_buffer(PyObject* self, Py_buffer*) {
  py::cast<SegmentObject&>(py::handle(self)).view_ends();
}

void support_buffers(PyHeapTypeObject* type) {
  type->as_buffer.bf_getbuffer = get_buffer;
  type->as_buffer.bf_releasebuffer = release_buffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;
}

py::object rights_of(Rights rights) { return enumerator("Rights", static_cast<int>(rights)); }

py::object atomics_of(AtomicDomain domain) {
  return enumerator("AtomicDomain", static_cast<int>(domain));
}

}  // namespace

SegmentObject::SegmentObject(py::object device, Segment segment, View view, bool read_only)
    : device_(std::move(device)),
      view_(std::move(view)),
      read_only_(read_only),
      segment_(std::move(segment)) {}

SegmentObject::~SegmentObject() {
  // In a child, another thread of the parent may have held the mutex.
  if (born_ != forks()) (void)mutex_.release();
  // Moved, so that it is unregistered while other threads of Python run.
  unlocked([this] { const Segment gone(std::move(segment_)); });
}

void SegmentObject::unregister() {
  value_of(with("segment.unregister", [](Segment& segment) -> Result<void> {
    auto gone = segment.unregister();
    // The device was closed, which has unregistered it.
    if (gone.status() == Status::closed) return {};
    return gone;
  }));
  unregistered_ = true;
  release_memory();
}

void SegmentObject::view_ends() {
  --views_;
  release_memory();
}

void SegmentObject::release_memory() {
  if (!unregistered_ || views_ > 0 || !view_) return;
  has_memory_ = false;
  view_.release();
}

RemoteSegment segment_of(py::handle object, const py::object& device, const char* name) {
  if (py::isinstance<RemoteSegmentObject>(object)) {
    const auto& remote = py::cast<const RemoteSegmentObject&>(object);
    if (remote.device.is(device)) return remote.value;
    refuse(PyExc_ValueError, std::string(name) +
                                 " was imported by another device. Fix: import it by the device "
                                 "of the Jetty");
  }
  if (py::isinstance<SegmentObject>(object)) {
    auto& own = py::cast<SegmentObject&>(object);
    if (own.device().is(device))
      return own.with(name, [](const Segment& segment) { return segment.local(); });
    refuse(PyExc_ValueError,
           std::string(name) + " is a segment of another device. Fix: import its descriptor");
  }
  if (object.is_none()) {
    refuse(PyExc_TypeError, std::string(name) +
                                " is None: nothing was published there, or no segment was given. "
                                "Fix: publish a segment, then import it");
  }
  refuse_type(object, name, "give the segment of device.import_(), or a segment of this device");
}

namespace {

void define_remote_segment(py::module_& module) {
  py::class_<RemoteSegmentObject>(module, "RemoteSegment",
                                  "Memory that works can write, read and change.")
      .def("__len__", [](const RemoteSegmentObject& self) { return self.value.bytes; })
      .def_property_readonly("device", [](const RemoteSegmentObject& self) { return self.device; })
      .def_property_readonly(
          "peer", [](const RemoteSegmentObject& self) { return peer_number(self.value.peer); })
      .def_property_readonly(
          "rights", [](const RemoteSegmentObject& self) { return rights_of(self.value.rights); })
      .def_property_readonly(
          "atomics", [](const RemoteSegmentObject& self) { return atomics_of(self.value.atomics); })
      .def_property_readonly("mapped",
                             [](const RemoteSegmentObject& self) { return self.value.mapped(); })
      .def("__repr__", [](const RemoteSegmentObject& self) {
        return "<urma.RemoteSegment of " + std::to_string(self.value.bytes) + " bytes>";
      });
}

using SegmentClass = py::class_<SegmentObject>;

// The ways of other packages to the memory, beside the buffer protocol.
void define_memory(SegmentClass& type) {
  const py::none none;
  type.def("__len__", [](const SegmentObject& self) { return self.bytes().size(); })
      .def_property_readonly(
          "memory", [](const py::object& self) { return py::memoryview(self); },
          "A memoryview of the segment.")
      .def("__dlpack__", to_dlpack, py::kw_only(), py::arg("stream") = none,
           py::arg("max_version") = none, py::arg("dl_device") = none, py::arg("copy") = none,
           "The segment as a tensor of uint8, without a copy.")
      .def("__dlpack_device__", dlpack_device);
}

}  // namespace

void define_segment(py::module_& module) {
  define_remote_segment(module);
  SegmentClass type(module, "Segment", py::custom_type_setup(support_buffers),
                    "Memory of this process that peers may access.");
  define_memory(type);
  type.def_property_readonly("device", [](const SegmentObject& self) { return self.device(); })
      .def_property_readonly(
          "rights",
          [](SegmentObject& self) {
            return rights_of(self.with("segment.rights", [](Segment& s) { return s.rights(); }));
          })
      .def_property_readonly("mapped",
                             [](SegmentObject& self) {
                               return self.with("segment.mapped",
                                                [](Segment& s) { return s.mapped(); });
                             })
      .def_property_readonly(
          "descriptor",
          [](SegmentObject& self) {
            return self.with("segment.descriptor", [](Segment& s) { return s.descriptor(); });
          },
          "The segment as one line of text, which contains its token.")
      .def_property_readonly(
          "local",
          [](SegmentObject& self) {
            return RemoteSegmentObject{
                self.device(), self.with("segment.local", [](Segment& s) { return s.local(); })};
          },
          "The segment as works of its own device name it.")
      .def(
          "rotate",
          [](SegmentObject& self) {
            value_of(self.with("segment.rotate", [](Segment& s) -> Result<void> {
              auto token = s.rotate();
              if (!token) return token.error();
              return {};
            }));
          },
          "Adds a second token; descriptor and local have it from now on.")
      .def(
          "retire",
          [](SegmentObject& self) {
            value_of(self.with("segment.retire", [](Segment& s) { return s.retire(); }));
          },
          "Ends the old token after rotate().")
      .def(
          "unregister", [](SegmentObject& self) { self.unregister(); },
          "Withdraws the segment: no peer accesses the memory any longer.")
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](SegmentObject& self, const py::args&) { self.unregister(); })
      .def("__repr__", [](const SegmentObject& self) {
        return "<urma.Segment of " + std::to_string(self.bytes().size()) + " bytes>";
      });
}

}  // namespace urma::python
