// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "apps/common/command_line.h"

namespace urma::apps::notify {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_notify - sends files directly into another process's memory, and resumes

  urma_notify serve DIR              receives into DIR, from this host and others until Ctrl-C
  urma_notify send FILE              sends to the receiver on this host, through shared memory
  urma_notify send FILE 10.0.0.5     sends to another host: HOST, ADDRESS or ADDRESS:PORT
  urma_notify send FILE FOLDER ... --to 10.0.0.5 --to 10.0.0.6       to several, at the same time
  tar -c . | urma_notify send - --as all.tar       standard input, stored in TMPDIR (/tmp) first

  --device STRING   serve: use only this device (repeatable); send: use this device
                    cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --to HOST         send: to this receiver (repeatable)        (localhost)
  --as NAME         send: store the file or folder under this name   (its own name)
  --replace         send: replace other files of the same names
  --rate BYTES      send: send at most BYTES per second to each: 500K, 20M
  --patience S      send: wait S seconds for a receiver that is lost during the transfer, or for
                    another sender of that name to end         (10)
  --json            send: print the result of each file, at each receiver, as JSON
  --demo            show, slowly, works that two processes have just done
  --speed N         --demo: N times faster
  --version

Either side may start first: send waits 2 s for a receiver that has not started yet.
A file keeps its mode and time, and gets its name when it is complete, on the disk, and its SHA-256
is that of the sender. Until then its name is .NAME.urma-part, with which the next attempt resumes.
Any process that reaches the receiver may send it files; the data is not encrypted.
Exit codes: 0 ok  1 error  2 usage  4 wrong bytes  5 receiver lost or not reached
  6 version mismatch  7 ok, but a capture (pcap) lacks packets  130 Ctrl-C
)";

// Without --to, the last of several words is the host, unless it is a file: then the user may have
// meant to send it.
void choose_hosts(Options& options, std::vector<std::string> named) {
  options.named_hosts = !named.empty();
  if (named.empty() && options.paths.size() > 1) {
    const std::string last = options.paths.back();
    if (last == "-" || access(last.c_str(), F_OK) == 0) {
      usage(
          fmt::format("\"{}\" is a file, and would be the host. Fix: name the host with --to: "
                      "--to localhost",
                      last));
    }
    named.push_back(last);
    options.paths.pop_back();
  }
  for (const std::string& host : named) {
    const apps::Host valid;
    if (host.empty() || !valid.read(host)) {
      usage(fmt::format("host: \"{}\" is invalid. Fix: give {}", host, valid.valid()));
    }
    if (std::ranges::count(named, host) > 1) {
      usage(fmt::format("--to {} is given twice. Fix: give each receiver once", host));
    }
  }
  if (!named.empty()) options.hosts = std::move(named);
}

void check_sending(const Options& options) {
  if (options.devices.size() > 1) usage("send takes one --device. Fix: leave the others out");
  if (std::ranges::count(options.paths, "-") > 1) {
    usage("standard input can be sent once. Fix: give one -");
  }
  if (!options.name.empty() && options.paths.size() > 1) {
    usage("--as names one file or folder. Fix: send the others by commands of their own");
  }
}

void check_demo(bool demo, bool words, const apps::CommandLine& line) {
  const auto other = line.first_given(
      {"--to", "--device", "--as", "--replace", "--json", "--rate", "--patience", "--speaks"});
  if (demo && !words && !other) return;
  usage(
      "--demo and --speed belong together, and to nothing else. Fix: urma_notify --demo --speed 2");
}

}  // namespace

std::string help() { return std::string(screen); }

apps::Service service() {
  return {.name = "urma_notify",
          .role = "receiver",
          .serve = "urma_notify serve DIR",
          .ask = "urma_notify send FILE"};
}

apps::Service service(const Options& options) {
  apps::Service made = service();
  made.ask = "urma_notify send";
  for (const std::string& path : options.paths) made.ask += " " + apps::quoted(path);
  if (!options.name.empty()) made.ask += " --as " + apps::quoted(options.name);
  if (options.named_hosts) made.ask += " --to";
  return made;
}

Options parse_options(int count, char** arguments) {
  Options options;
  std::vector<std::string> words;
  std::vector<std::string> hosts;
  apps::CommandLine line("urma_notify", help);
  line.words(words);
  line.offer("words", {"send", "serve"});
  line.texts("--to", hosts);
  line.texts("--device", options.devices);
  line.text("--as", options.name);
  line.flag("--replace", options.replace);
  line.flag("--json", options.json);
  bool demo = false;
  line.flag("--demo", demo);
  line.value("--speed", options.speed, apps::WholeNumber{1, 100});
  line.value("--rate", options.bytes_per_second, apps::Bytes{uint64_t{1} << 40});
  line.value("--patience", options.patience_seconds, apps::WholeNumber{1, 86400});
  line.value("--speaks", options.speaks, apps::WholeNumber{1, INT32_MAX});
  if (const Asked asked = line.parse(count, arguments); asked != Asked::nothing) {
    options.mode = asked == Asked::help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  if (demo || line.given("--speed")) {
    check_demo(demo, !words.empty(), line);
    options.mode = Options::Mode::demo;
    return options;
  }
  const std::string what = words.empty() ? "" : words.front();
  const bool serves = what == "serve";
  if (!serves && what != "send") {
    usage(fmt::format("{}. Fix: urma_notify serve DIR, urma_notify send FILE HOST, or see --help",
                      what.empty() ? "missing command: serve or send"
                                   : fmt::format("\"{}\" is not a command", what)));
  }
  options.mode = serves ? Options::Mode::serve : Options::Mode::send;
  options.paths.assign(words.begin() + 1, words.end());
  std::erase(options.paths, "");
  if (options.paths.empty()) {
    usage(fmt::format("{}: {} is missing. Fix: name it", what, serves ? "the folder" : "the file"));
  }
  if (!serves) {
    choose_hosts(options, std::move(hosts));
    check_sending(options);
  } else if (options.paths.size() > 1 ||
             line.first_given({"--to", "--as", "--replace", "--json", "--rate", "--patience"})) {
    usage(
        "serve takes a folder and --device, and nothing else. Fix: give the other options to "
        "urma_notify send");
  }
  return options;
}

}  // namespace urma::apps::notify
