#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <memory>
#include <thread>

#include "apps/common/captures.h"
#include "apps/common/devices.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/common/server_threads.h"
#include "apps/urma_notify/lines.h"
#include "apps/urma_notify/options.h"
#include "apps/urma_notify/receiver.h"
#include "apps/urma_notify/sender.h"

namespace urma::apps::notify {
namespace {

Exit serve(const Options& options) {
  const File folder = open_folder(options.path);
  std::signal(SIGXFSZ, SIG_IGN);  // then a write beyond the limit on file sizes fails with an error
  std::atomic<bool> over{false};
  const auto receivers = apps::make_servers(
      options.devices,
      [&](const std::string& device) {
        return std::make_unique<Receiver>(device, folder.get(), over);
      },
      complain);
  for (const auto& receiver : receivers) receiver->say_where();
  std::vector<std::function<void()>> bodies;
  for (const auto& receiver : receivers) bodies.emplace_back([&receiver] { receiver->run(); });
  apps::run_together(bodies, over);
  return Exit::ok;
}

// Repeats attempts for as long as they lose a receiver that had been reached.
Exit send(Options options) {
  const Outgoing file(options.path);
  if (options.name.empty()) options.name = file.name();
  const std::string device_text =
      options.devices.empty() ? apps::device_towards(options.host) : options.devices[0];
  bool reached = false;
  for (auto until = Clock::now();;) {
    try {
      apps::Captures captures("urma_notify");  // destroyed after the device
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
  return options.mode == Options::Mode::serve ? serve(options) : send(options);
}

}  // namespace
}  // namespace urma::apps::notify

int main(int count, char** arguments) {
  using namespace urma::apps;
  return run_program<notify::Options>(
      {.name = "urma_notify",
       .version = fmt::format("{}, protocol {}", library_version(), notify::protocol),
       .help = notify::help,
       .parse = notify::parse_options,
       .run = notify::run},
      count, arguments);
}
