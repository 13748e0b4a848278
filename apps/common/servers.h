#pragma once

#include <string>

#include "apps/common/failure.h"
#include "urma/urma.hpp"

namespace urma::apps {

// A program that serves and one that asks find each other by a published name. Errors and the
// lines that a server prints name the commands to type.
struct Service {
  std::string name;         // as it is published: urma_notify
  std::string role;         // of the program that serves: receiver
  std::string serve;        // the command line that starts it: urma_notify serve DIR
  std::string ask;          // that of a client, without its host: urma_notify send FILE
  std::string device = {};  // a client's --device, if it has one
};

// Throws a Failure if the device string names a simulated network, which exists within one process:
// the two sides of a service are two processes.
void refuse_simulation(const std::string& device);
// Opens a device for one side of a service.
Device open_device(const std::string& device);

// The server at HOST: localhost, ADDRESS or ADDRESS:PORT. Where several serve this host, that of
// the loopback is meant. Throws a Failure with the command that would reach a server.
Imported find_server(Device& device, const std::string& host, const Service& service);

// The Failure for a name that could not be published on this device.
Failure not_published(const Device& device, const Service& service, const Error& error);

// Returns the command by which a client on this host reaches the server on this device, which has
// published its name. It names a host and a device if it needs them.
std::string command_to_reach(Device& device, const std::string& text, const Service& service);

// Quotes a word for a shell, if it needs quotes.
std::string quoted(const std::string& word);

}  // namespace urma::apps
