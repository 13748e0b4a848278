#include "apps/urma_info/checks.h"
#include "apps/urma_info/message.h"

namespace urma::apps::info {
namespace {

Finding check_device(const Host& host, const std::string& device) {
  const Result<void> opened = host.open(device);
  if (opened) return ok("opens");
  const Message message = split_message(opened.error().message);
  return fix("does not open: " + message.what, message.fix);
}

}  // namespace

Finding check_window_device(const Host& host) {
  return check_device(host, std::string(default_device));
}

Finding check_network_device(const Host& host) { return check_device(host, "udp:"); }

}  // namespace urma::apps::info
