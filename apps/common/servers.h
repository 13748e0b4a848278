// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "apps/common/failure.h"
#include "urma/urma.hpp"

namespace urma::apps {

// For so long a client looks for a server that has not started yet. Each tool's --help says so.
inline constexpr Duration server_patience = std::chrono::seconds(2);

// A server and its clients find each other by a published name. Errors, and the lines that a server
// prints, contain the commands to type.
struct Service {
  std::string name;   // the published name, such as urma_notify
  std::string role;   // what the server is called, such as receiver
  std::string serve;  // the command line that starts it, such as urma_notify serve DIR
  std::string ask;  // the command line of a client without its host, such as urma_notify send FILE
  std::string device = {};  // the --device of a client, if it has one
  bool reports = false;     // a client has something to print, so Ctrl-C does not end its search
  Duration patience = server_patience;
};

// Throws a Failure if the device string names a simulated network, which exists within one process:
// the two sides of a service are two processes.
void refuse_simulation(const std::string& device);
// Opens a device for one side of a service.
Device open_device(const std::string& device);

// Imports the server at HOST: localhost, ADDRESS or ADDRESS:PORT. If several servers serve this
// host, imports the one on the loopback. Throws a Failure with the command that would reach a
// server.
Imported find_server(Device& device, const std::string& host, const Service& service);

// Returns the Failure for a name that could not be published on this device.
Failure not_published(const Device& device, const Service& service, const Error& error);

// Returns the command by which a client on this host reaches the server on this device, which has
// published its name. It names a host and a device if it needs them.
std::string command_to_reach(Device& device, const std::string& text, const Service& service);

// Quotes a word for a shell, if it needs quotes.
std::string quoted(const std::string& word);

}  // namespace urma::apps
