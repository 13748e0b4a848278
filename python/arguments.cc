// SPDX-License-Identifier: Apache-2.0
#include "python/arguments.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cmath>

namespace urma::python {
namespace {

std::atomic<unsigned> fork_count{0};

std::string type_of(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// Returns the text of the exception that Python has raised, and clears it.
std::string pending_text() {
  const py::error_already_set raised;
  return py::str(raised.value());
}

py::int_ index_of(py::handle object, const char* name) {
  if (PyIndex_Check(object.ptr()) == 0) refuse_type(object, name, "give an integer");
  PyObject* const number = PyNumber_Index(object.ptr());
  if (number == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::int_>(number);
}

}  // namespace

void raise(const Error& error) {
  const py::object made = py::module_::import("urma._errors")
                              .attr("error_of")(static_cast<int>(error.status), error.message);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw py::error_already_set();
}

void refuse(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw py::error_already_set();
}

void refuse_type(py::handle object, const char* name, const char* fix) {
  refuse(PyExc_TypeError, std::string(name) + " is of type " + type_of(object) + ". Fix: " + fix);
}

uint64_t integer_of(py::handle object, const char* name, uint64_t least, uint64_t most) {
  const py::int_ number = index_of(object, name);
  const uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
  const bool outside = value == UINT64_MAX && PyErr_Occurred() != nullptr;
  if (outside) PyErr_Clear();
  if (outside || value < least || value > most) {
    refuse(PyExc_ValueError,
           std::string(name) + " is " + py::cast<std::string>(py::str(py::handle(number))) +
               ". Fix: give " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

uint64_t word_of(py::handle object, const char* name, uint64_t bytes) {
  const py::int_ number = index_of(object, name);
  int overflow = 0;
  const long long signed_value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  const uint64_t bits = bytes * 8;
  bool fits = false;
  uint64_t value = 0;
  if (overflow == 0) {
    value = static_cast<uint64_t>(signed_value);
    fits = bits == 64 ||
           (signed_value >= -(int64_t{1} << (bits - 1)) && signed_value < int64_t{1} << bits);
  } else if (overflow > 0 && bits == 64) {
    value = PyLong_AsUnsignedLongLong(number.ptr());
    fits = PyErr_Occurred() == nullptr;
    PyErr_Clear();
  }
  if (!fits) {
    refuse(PyExc_ValueError, std::string(name) + " is " +
                                 py::cast<std::string>(py::str(py::handle(number))) +
                                 ", which does not fit into " + std::to_string(bytes) +
                                 " bytes. Fix: give a smaller number, or a larger size");
  }
  return value;
}

Duration duration_of(py::handle object, const char* name) {
  if (object.is_none()) return Duration::max();
  py::object seconds = py::reinterpret_borrow<py::object>(object);
  if (py::hasattr(seconds, "total_seconds")) seconds = seconds.attr("total_seconds")();
  if (PyNumber_Check(seconds.ptr()) == 0)
    refuse_type(object, name, "give seconds as a number, or None for no limit");
  const double value = PyFloat_AsDouble(seconds.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (!(value >= 0)) {
    refuse(PyExc_ValueError, std::string(name) + " is " +
                                 py::cast<std::string>(py::str(py::handle(seconds))) +
                                 " s. Fix: give 0 or more seconds, or None for no limit");
  }
  constexpr double most = 9e9;  // s, in a Duration
  if (value >= most) return Duration::max();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

std::string text_of(py::handle object, const char* name) {
  if (!py::isinstance<py::str>(object)) refuse_type(object, name, "give a str");
  return py::cast<std::string>(object);
}

py::object enumerator(const char* enumeration, int value) {
  return py::module_::import("urma._enums").attr(enumeration)(value);
}

int value_of_enumerator(py::handle object, const char* enumeration, const char* name) {
  const py::object type = py::module_::import("urma._enums").attr(enumeration);
  if (!py::isinstance(object, type)) {
    refuse_type(object, name, (std::string("give a member of urma.") + enumeration).c_str());
  }
  return py::cast<int>(object.attr("value"));
}

View::View(py::handle object, bool writable, const char* name) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    if (!Tensor::is_one(object)) {
      refuse_type(object, name,
                  "give bytes, a bytearray, a memoryview, an array of NumPy, a tensor, or a "
                  "segment; text.encode() for a str");
    }
    tensor_ = Tensor(object, name);
    return;
  }
  if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
    std::string why = pending_text();
    if (why.ends_with('.')) why.pop_back();
    refuse(PyExc_BufferError, std::string(name) + ": " + why +
                                  ". Fix: give memory that is contiguous" +
                                  (writable ? " and writable, as a bytearray or numpy.empty()"
                                            : ", as numpy.ascontiguousarray() makes it"));
  }
  held_ = true;
}

View& View::operator=(View&& other) noexcept {
  if (this == &other) return *this;
  release();
  view_ = other.view_;
  held_ = std::exchange(other.held_, false);
  tensor_ = std::move(other.tensor_);
  return *this;
}

void View::release() {
  if (std::exchange(held_, false)) PyBuffer_Release(&view_);
  tensor_.release();
}

unsigned forks() { return fork_count.load(std::memory_order_relaxed); }

void count_forks() {
  pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
}

void refuse_if_forked(unsigned born, const char* call) {
  if (born == forks()) return;
  raise(error(Status::forked,
              std::string(call) + ": the device was opened by the parent of this process"));
}

}  // namespace urma::python
