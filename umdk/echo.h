// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <memory>
#include <optional>
#include <vector>

#include "umdk/descriptor.h"
#include "urma/urma.hpp"

namespace urma::umdk {

// The well-known Jetty that answers urma_ping, and the name by which a device finds it that knows
// only an EID (docs/porting-from-umdk.md).
inline constexpr JettyId ping_jetty{5};
inline constexpr char ping_name[] = "umdk.jetty-5";

// Answers each message that arrives at Jetty 5 of a device with the same message, on a thread of
// its own, which sleeps while nothing arrives. A context has one if the environment asks for it.
//
// Of several processes at one EID, one answers: the one that has published the name. The others try
// again every 2 s. Over a network a name is asked for at UDP port 4792, so the process opens that
// port as well if it is vacant.
class Echo {
 public:
  // Whether the variable URMA_PING asks for answers.
  static bool wanted();

  // Errors: those of Device::jetty, with which no process pings this device.
  static Result<std::unique_ptr<Echo>> start(urma::Device& device);
  ~Echo();

 private:
  Echo(urma::Device& device, urma::Jetty jetty);

  void run();
  void handle(const Completion& completion);
  void post(uint64_t slot);

  // Makes this process found at its EID, unless another one is.
  void be_found();
  bool publish();
  void tell(const Error& why);
  bool open_door();

  urma::Device& device_;
  urma::Jetty jetty_;
  std::vector<std::byte> memory_;
  std::optional<urma::Device> door_;  // at port 4792
  bool published_ = false;
  bool found_ = false;
  bool told_ = false;
  OwnDescriptor stop_;
  const int process_;
  bool running_ = false;
  pthread_t thread_{};
};

}  // namespace urma::umdk
