// SPDX-License-Identifier: Apache-2.0
// The module urma._urma. The package in urma/ has the rest: enumerations, exceptions, asyncio.

#include <pybind11/pybind11.h>

#include <string>

#include "python/arguments.h"
#include "python/device.h"
#include "python/jetty.h"
#include "python/lane.h"
#include "python/segment.h"
#include "python/works.h"

namespace urma::python {
namespace {

// Returns the explanations of a status: its meaning, its likely causes and its cure.
py::tuple explain(int status) {
  const StatusInfo& info = describe(static_cast<Status>(status));
  py::list causes;
  for (const std::string_view cause : info.causes()) causes.append(std::string(cause));
  return py::make_tuple(std::string(info.meaning), py::tuple(causes), std::string(info.cure));
}

// Returns the names and values of the statuses, which a test compares with those in Python.
py::dict statuses() {
  py::dict all;
  for (const StatusInfo& info : all_statuses())
    all[py::str(std::string(info.name))] = static_cast<int>(info.status);
  return all;
}

py::list event_kinds() {
  py::list all;
  for (int i = 0; i <= static_cast<int>(EventKind::path_removed); ++i)
    all.append(std::string(name(static_cast<EventKind>(i))));
  return all;
}

}  // namespace
}  // namespace urma::python

PYBIND11_MODULE(_urma, module) {
  using namespace urma::python;
  module.doc() = "The compiled part of the package urma.";
  count_forks();
  define_segment(module);
  define_works(module);
  define_arrivals(module);
  define_lane(module);
  define_jetty(module);
  define_device(module);
  module.def("explain", explain);
  module.def("statuses", statuses);
  module.def("event_kinds", event_kinds);
  module.attr("__version__") = URMA_VERSION;
}
