#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "apps/common/captures.h"
#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_notify/lines.h"
#include "apps/urma_notify/options.h"
#include "apps/urma_notify/receiver.h"
#include "apps/urma_notify/sender.h"

namespace urma::notify {
namespace {

// Those that could be made. One that could not ends it only if it was named, or is the only one:
// its address may be another receiver's, or not be ready yet. Else it is said.
std::vector<std::unique_ptr<Receiver>> make_receivers(const Options& options, int folder,
                                                      std::atomic<bool>& over) {
  const bool named = !options.devices.empty();
  std::vector<std::unique_ptr<Receiver>> receivers;
  std::optional<Failure> first;
  std::vector<std::string> without;
  for (const std::string& device : named ? options.devices : apps::devices_of_this_host()) {
    try {
      receivers.push_back(std::make_unique<Receiver>(device, folder, over));
    } catch (const Failure& failure) {
      if (named) throw;
      if (!first) first = failure;
      without.push_back(fmt::format("without {}: {}", device, failure.what()));
    }
  }
  if (receivers.empty()) throw *first;
  for (const std::string& one : without) complain(one);
  return receivers;
}

Exit serve(const Options& options) {
  const File folder = open_folder(options.path);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like others
  std::atomic<bool> over{false};
  const auto receivers = make_receivers(options, folder.get(), over);
  for (const auto& receiver : receivers) receiver->say_where();
  std::vector<std::exception_ptr> failed(receivers.size());
  const auto run = [&](size_t i) {
    try {
      receivers[i]->run();
    } catch (const std::exception&) {
      failed[i] = std::current_exception();
    }
    over = true;
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < receivers.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& why : failed) {
    if (why) std::rethrow_exception(why);
  }
  return Exit::ok;
}

// Attempts, until one ends otherwise than by losing a receiver that has been there.
Exit send(Options options) {
  const Outgoing file(options.path);
  if (options.name.empty()) options.name = file.name();
  const std::string device_text =
      options.devices.empty() ? apps::device_towards(options.host) : options.devices[0];
  bool reached = false;
  for (auto until = Clock::now();;) {
    try {
      apps::Captures captures("urma_notify");  // looks when the device has closed
      Device device = captures.watch(apps::open_device(device_text));
      Sender sender(options, file, device);
      try {
        return sender.run();
      } catch (const Failure& failure) {
        if (sender.reached()) {
          reached = true;
          until = Clock::now() + std::chrono::seconds(options.patience_seconds);
        }
        throw;
      }
    } catch (const Failure& failure) {
      if (!reached || failure.exit() != Exit::peer_lost || Clock::now() > until) throw;
      complain(fmt::format("{}; trying again", failure.what()));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }
}

Exit run(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help:
      apps::print(help());
      return Exit::ok;
    case Options::Mode::version:
      apps::print(fmt::format("urma_notify {}, protocol {}\n", library_version(), protocol));
      return Exit::ok;
    case Options::Mode::serve:
      return serve(options);
    case Options::Mode::send:
      return send(options);
  }
  return Exit::error;
}

}  // namespace
}  // namespace urma::notify

int main(int count, char** arguments) {
  return urma::apps::run_program("urma_notify", [&] {
    const urma::notify::Options options = urma::notify::parse_options(count, arguments);
    urma::apps::handle_signals();
    return urma::notify::run(options);
  });
}
