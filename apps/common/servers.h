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

// What a client on this host types to reach the server on this device, which has published its
// name: the command, with a host and a device where it needs them.
std::string command_to_reach(Device& device, const std::string& text, const Service& service);

// As a shell takes it for one word.
std::string quoted(const std::string& word);

}  // namespace urma::apps
