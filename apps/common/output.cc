#include "apps/common/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "apps/common/failure.h"

namespace urma::apps {

void prepare_output() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest vacant one, which is this one. The wrong way round: using it is still an error.
    const int how = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", how) != descriptor) break;
  }
  std::signal(SIGPIPE, SIG_IGN);
}

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

void print_error(std::string_view line) { write_all(STDERR_FILENO, std::string(line) + "\n"); }

}  // namespace urma::apps
