// SPDX-License-Identifier: Apache-2.0
#pragma once

// How arguments of Python become values of the library, and errors of the library exceptions.
// Everything here is called with the GIL.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "python/dlpack.h"
#include "urma/core/result.h"
#include "urma/core/time.h"

namespace urma::python {

namespace py = pybind11;

// Raises urma.Error, or the subclass that belongs to the status.
[[noreturn]] void raise(const Error& error);
// Raises an exception of Python: PyExc_TypeError, PyExc_ValueError, PyExc_BufferError.
[[noreturn]] void refuse(PyObject* type, const std::string& text);
// Refuses an object of a wrong type. `name` is the argument; `fix` says what can be given.
[[noreturn]] void refuse_type(py::handle object, const char* name, const char* fix);

// Returns the value, or raises the error.
template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(*result);
}
inline void value_of(const Result<void>& result) {
  if (!result.ok()) raise(result.error());
}

// Calls the function without the GIL, so that other threads of Python run meanwhile.
template <class Function>
auto unlocked(Function&& function) {
  const py::gil_scoped_release released;
  return function();
}

// Returns an integer, also one of NumPy.
uint64_t integer_of(py::handle object, const char* name, uint64_t least, uint64_t most);
// Returns the bits of an integer for a word of `bytes` bytes, which may be signed or unsigned.
uint64_t word_of(py::handle object, const char* name, uint64_t bytes);
// Returns a time in seconds, a number or a datetime.timedelta; Duration::max() for None.
Duration duration_of(py::handle object, const char* name);
// Returns the text of a str.
std::string text_of(py::handle object, const char* name);

// Returns a member of an enumeration of the package: enumerator("Status", 0).
py::object enumerator(const char* enumeration, int value);
// Returns the value of such a member.
int value_of_enumerator(py::handle object, const char* enumeration, const char* name);

// The memory of an object that supports the buffer protocol or DLPack, without a copy. While this
// exists, the object can neither be freed nor resized. Move only.
class View {
 public:
  View() = default;
  // Raises TypeError or BufferError.
  View(py::handle object, bool writable, const char* name);
  View(View&& other) noexcept
      : view_(other.view_),
        held_(std::exchange(other.held_, false)),
        tensor_(std::move(other.tensor_)) {}
  View& operator=(View&& other) noexcept;
  ~View() { release(); }

  void release();
  explicit operator bool() const { return held_ || tensor_; }
  bool read_only() const { return view_.readonly != 0; }
  std::span<std::byte> bytes() const {
    if (!held_) return tensor_.bytes();
    return {static_cast<std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
  bool held_ = false;
  Tensor tensor_;
};

// Counts the forks that led to this process. An object whose number differs belongs to a parent.
unsigned forks();
// Starts counting. Called once, before any object is made.
void count_forks();
// Raises urma.Error with Status.FORKED if the object was made before a fork.
void refuse_if_forked(unsigned born, const char* call);

}  // namespace urma::python
