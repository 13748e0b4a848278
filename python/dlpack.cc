// SPDX-License-Identifier: Apache-2.0
#include "python/dlpack.h"

#include <cstdint>
#include <memory>
#include <string>

#include "python/arguments.h"

namespace urma::python {

// These have the layout of dlpack.h before its version 1, which every producer can make.
struct TensorDevice {
  int32_t type;
  int32_t number;
};
struct TensorElement {
  uint8_t kind;
  uint8_t bits;
  uint16_t lanes;
};
struct ManagedTensor {
  void* data;
  TensorDevice device;
  int32_t dimensions;
  TensorElement element;
  int64_t* shape;
  int64_t* strides;  // in elements; null if the tensor is contiguous
  uint64_t offset_bytes;
  void* owner;
  void (*release)(ManagedTensor*);
};

namespace {

constexpr int32_t processor = 1;
constexpr uint8_t unsigned_integer = 1;
const char* const capsule_name = "dltensor";
const char* const used_name = "used_dltensor";

// Memory that processors can read: of the host, or of the host and locked for CUDA or ROCm.
bool on_host(int32_t type) { return type == processor || type == 3 || type == 11; }

size_t bytes_of(const ManagedTensor& tensor) {
  size_t bytes = (size_t{tensor.element.bits} * tensor.element.lanes + 7) / 8;
  for (int32_t i = 0; i < tensor.dimensions; ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
  return bytes;
}

bool contiguous(const ManagedTensor& tensor) {
  if (tensor.strides == nullptr || bytes_of(tensor) == 0) return true;
  int64_t stride = 1;
  for (int32_t i = tensor.dimensions; i-- > 0;) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

// A tensor of the bytes of an object, and the view that holds them.
struct Exported {
  ManagedTensor tensor{};
  int64_t bytes = 0;
  int64_t stride = 1;
  Py_buffer view{};
};

// Called by the consumer, on any thread.
void release_exported(ManagedTensor* tensor) {
  // No call into Python is allowed once the interpreter has ended.
  if (Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire held;
  const py::error_scope pending;
  const std::unique_ptr<Exported> exported(static_cast<Exported*>(tensor->owner));
  PyBuffer_Release(&exported->view);
}

void free_capsule(PyObject* capsule) {
  // A consumer gives the capsule another name.
  if (PyCapsule_IsValid(capsule, capsule_name) == 0) return;
  release_exported(static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, capsule_name)));
}

}  // namespace

bool Tensor::is_one(py::handle object) {
  return py::hasattr(object, "__dlpack__") && py::hasattr(object, "__dlpack_device__");
}

Tensor::Tensor(py::handle object, const char* name) {
  const auto cannot = [&](const std::string& why, const char* fix) {
    refuse(PyExc_BufferError, std::string(name) + ": " + why + ". Fix: " + fix);
  };
  try {
    const py::tuple device = object.attr("__dlpack_device__")();
    if (!on_host(py::cast<int32_t>(py::int_(device[0]))))
      cannot("the tensor is in the memory of a device",
             "give a copy in this host's memory (.cpu())");
    const py::object capsule = object.attr("__dlpack__")();
    if (PyCapsule_IsValid(capsule.ptr(), capsule_name) == 0)
      cannot("__dlpack__ returned no tensor", "give an array of NumPy");
    auto* const tensor =
        static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), capsule_name));
    if (!contiguous(*tensor))
      cannot("the tensor is not contiguous", "give a contiguous one (.contiguous())");
    PyCapsule_SetName(capsule.ptr(), used_name);
    held_ = tensor;
    bytes_ = {static_cast<std::byte*>(tensor->data) + tensor->offset_bytes, bytes_of(*tensor)};
  } catch (const py::error_already_set& raised) {
    // An error of the tensor's library: for example, the tensor needs a gradient.
    if (!raised.matches(PyExc_Exception) || raised.matches(PyExc_MemoryError)) throw;
    std::string text = py::str(raised.value());
    if (text.ends_with('.')) text.pop_back();
    if (text.find(". Fix: ") != std::string::npos) throw;
    cannot(text, "give a tensor whose memory can be shared (.detach().cpu().contiguous())");
  }
}

void Tensor::release() {
  ManagedTensor* const gone = std::exchange(held_, nullptr);
  bytes_ = {};
  if (gone != nullptr && gone->release != nullptr) gone->release(gone);
}

py::capsule to_dlpack(const py::object& self, const py::object& stream,
                      const py::object& /*max_version*/, const py::object& dl_device,
                      const py::object& copy) {
  if (!stream.is_none() || !(dl_device.is_none() || dl_device.equal(dlpack_device(self)))) {
    refuse(PyExc_BufferError,
           "segment: its memory is that of the processors. Fix: leave out stream and dl_device, "
           "then copy the tensor");
  }
  if (copy.ptr() == Py_True)
    refuse(PyExc_BufferError, "segment: it is not copied. Fix: copy=None, then copy the tensor");
  auto exported = std::make_unique<Exported>();
  if (PyObject_GetBuffer(self.ptr(), &exported->view, PyBUF_SIMPLE) != 0)
    throw py::error_already_set();
  if (exported->view.readonly != 0) {
    PyBuffer_Release(&exported->view);
    refuse(PyExc_BufferError,
           "segment: it is read-only, which a tensor does not say. Fix: use memoryview(segment)");
  }
  exported->bytes = exported->view.len;
  exported->tensor = {.data = exported->view.buf,
                      .device = {.type = processor, .number = 0},
                      .dimensions = 1,
                      .element = {.kind = unsigned_integer, .bits = 8, .lanes = 1},
                      .shape = &exported->bytes,
                      .strides = &exported->stride,
                      .offset_bytes = 0,
                      .owner = exported.get(),
                      .release = release_exported};
  py::capsule made(&exported->tensor, capsule_name, free_capsule);
  (void)exported.release();  // the capsule, and then its consumer, owns it
  return made;
}

py::tuple dlpack_device(const py::object&) { return py::make_tuple(processor, 0); }

}  // namespace urma::python
