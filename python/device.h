// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "python/arguments.h"
#include "urma/urma.hpp"

namespace urma::python {

// A device. Objects that are made from it refer to it, so it stays open while they exist, or until
// it is closed.
class DeviceObject {
 public:
  explicit DeviceObject(urma::Device device) : device_(std::move(device)) {}
  ~DeviceObject();
  DeviceObject(const DeviceObject&) = delete;

  urma::Device& inner() { return device_; }
  // As above, for calls that do not say themselves that they are made in a child.
  urma::Device& inner_here(const char* call);
  bool closed() const { return closed_; }
  void close();
  // Returns the oldest event, or None.
  py::object next_event();

 private:
  const unsigned born_ = forks();
  urma::Device device_;
  bool closed_ = false;
};

void define_device(py::module_& module);

}  // namespace urma::python
