// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "python/arrivals.h"
#include "python/works.h"

namespace urma::python {

// The options of device.jetty().
struct JettyOptionsObject {
  JettyOptions works;
  uint32_t receives = 0;
  uint32_t message_bytes = 0;
};

// A Jetty of Python: works complete in the queue of the library's Jetty, arrivals in that of a Jfr
// of its own, so that arrivals that no thread takes do not delay completions of works.
class JettyObject {
 public:
  JettyObject(py::object device_object, urma::Device& device, const JettyOptionsObject& options);
  ~JettyObject();
  JettyObject(const JettyObject&) = delete;

  const py::object& device() const { return device_; }
  Works& works() { return works_; }
  Arrivals& arrivals() { return arrivals_; }
  // Returns the library's Jetty. Raises urma.Error if this one is closed.
  Jetty& inner(const char* call);
  bool closed() const { return closed_; }
  uint32_t inline_bytes() const { return inline_bytes_; }
  void close();

 private:
  const unsigned born_ = forks();
  py::object device_;
  Arrivals arrivals_;
  std::optional<Jetty> jetty_;
  Works works_;
  uint32_t inline_bytes_;
  bool closed_ = false;
};

void define_jetty(py::module_& module);

}  // namespace urma::python
