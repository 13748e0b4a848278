// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "python/arguments.h"
#include "urma/urma.hpp"

namespace urma::python {

// A segment, with the buffer protocol. Views of it keep it alive. If its memory belongs to another
// object of Python, the segment holds that object's buffer until it is unregistered and no view of
// the segment is left.
//
// `mutex_` guards the segment, because the library allows one thread at a time. It is never awaited
// with the GIL held.
class SegmentObject {
 public:
  SegmentObject(py::object device, Segment segment, View view, bool read_only);
  ~SegmentObject();
  SegmentObject(const SegmentObject&) = delete;

  const py::object& device() const { return device_; }
  std::span<std::byte> bytes() const { return segment_.bytes(); }
  bool read_only() const { return read_only_; }
  bool has_memory() const { return has_memory_; }

  // Calls the function with the segment, without the GIL.
  template <class Function>
  auto with(const char* call, Function&& function) {
    refuse_if_forked(born_, call);
    return unlocked([&] {
      const std::lock_guard held(*mutex_);
      return function(segment_);
    });
  }
  // Raises urma.Error with Status.NOT_FENCED; then the memory stays held.
  void unregister();

  // Called for each view that begins and that ends.
  void view_begins() { ++views_; }
  void view_ends();

 private:
  void release_memory();

  const unsigned born_ = forks();
  py::object device_;
  View view_;  // of registered memory
  const bool read_only_;
  bool has_memory_ = true;
  bool unregistered_ = false;
  size_t views_ = 0;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  Segment segment_;
};

void define_segment(py::module_& module);

}  // namespace urma::python
