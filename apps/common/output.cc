#include "apps/common/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/common/failure.h"

namespace urma::apps {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void print(std::string_view text, std::string_view what) {
  if (write_all(STDOUT_FILENO, text)) return;
  throw Failure(Exit::error, fmt::format("{}: writing to stdout: {}. Fix: free some space, or "
                                         "read all of it",
                                         what, std::strerror(errno)));
}

void print_json(const nlohmann::json& whole) { print(whole.dump(2) + "\n", "--json"); }

}  // namespace urma::apps
