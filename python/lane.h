// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python/arguments.h"
#include "urma/urma.hpp"

namespace urma::python {

// A lane of the library. The thread that made it calls it.
class LaneObject {
 public:
  LaneObject(py::object device, Lane lane) : device_(std::move(device)), lane_(std::move(lane)) {}

  void write(const py::object& data, const py::object& offset);
  void read(const py::object& into, const py::object& offset);
  uint64_t fetch_add(const py::object& offset, const py::object& operand, const py::object& size);
  uint64_t swap(const py::object& offset, const py::object& desired, const py::object& size);
  uint64_t compare_swap(const py::object& offset, const py::object& expected,
                        const py::object& desired, const py::object& size);

 private:
  py::object device_;  // stays open
  Lane lane_;
};

void define_lane(py::module_& module);

}  // namespace urma::python
