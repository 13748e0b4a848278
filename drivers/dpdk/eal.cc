// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/eal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <vector>

#include "base/above_standard.h"
#include "base/signals_blocked.h"
#include "drivers/dpdk/eal_log.h"

namespace urma::drivers::dpdk {
namespace {

// Without huge pages, EAL reserves all memory for buffers at once; it uses what is touched.
constexpr const char* reserved_mb = "1024";
// Fewer bytes of huge pages than this may not hold the buffers of one port and what EAL needs.
constexpr uint64_t enough_huge_bytes = 256 << 20;
constexpr unsigned huge_page_kib[] = {64, 2048, 16384, 32768, 524288, 1048576};  // of any processor
// An address that no NIC has. A list of allowed NICs, of which none exists, keeps EAL from taking
// any, and does not keep it from adding one later, as --no-pci does.
constexpr const char* no_nic = "ffff:ff:1f.7";
constexpr unsigned most_processors = 128;  // those that EAL can name

uint64_t free_huge_pages_of(unsigned kib) {
  const std::string path =
      "/sys/kernel/mm/hugepages/hugepages-" + std::to_string(kib) + "kB/free_hugepages";
  const int file = above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) return 0;
  char text[32] = {};
  [[maybe_unused]] const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  return std::strtoull(text, nullptr, 10);
}

uint64_t free_huge_bytes() {
  uint64_t sum = 0;
  for (const unsigned kib : huge_page_kib) sum += free_huge_pages_of(kib) * kib * 1024;
  return sum;
}

// Returns EAL's only lcore, on the processors on which the calling thread may run.
std::string lcores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed);
  std::string list;
  for (unsigned i = 0; i < most_processors; ++i) {
    if (CPU_ISSET(i, &allowed)) list += (list.empty() ? "" : ",") + std::to_string(i);
  }
  return "--lcores=0@(" + (list.empty() ? "0" : list) + ")";
}

// The calling thread's affinity is as before when this object is destroyed.
class KeptAffinity {
 public:
  KeptAffinity() { pthread_getaffinity_np(pthread_self(), sizeof before_, &before_); }
  KeptAffinity(const KeptAffinity&) = delete;
  ~KeptAffinity() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// EAL raises the number of descriptors that the process may open. It is as before when this object
// is destroyed.
class KeptOpenFiles {
 public:
  KeptOpenFiles() { getrlimit(RLIMIT_NOFILE, &before_); }
  KeptOpenFiles(const KeptOpenFiles&) = delete;
  ~KeptOpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Two libraries that net_af_xdp uses print to stderr.
void silence(const char* library, const char* set_print) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return;
  using Print = void*;
  if (void* const set = dlsym(handle, set_print)) reinterpret_cast<Print (*)(Print)>(set)(nullptr);
}

std::string cure_of(const std::string& log) {
  const auto says = [&](const char* what) { return log.find(what) != log.npos; };
  if (says("Cannot get a virtual area")) return "allow more address space (ulimit -v unlimited)";
  if (says("another primary process")) return "end that process, or add eal=--file-prefix=NAME";
  if (says("hugepage") || says("hugetlbfs")) return "add eal=--no-huge to the device string";
  return "start the process again with other eal= arguments, or none";
}

}  // namespace

Eal::Eal(const std::string& given) : given_(given) {}

Result<const Eal*> Eal::start(const std::string& arguments) {
  static std::mutex mutex;
  static Eal* eal = nullptr;  // never destroyed: EAL's threads run until the process ends
  static Result<void> started;
  static pid_t starter = 0;
  const std::lock_guard lock(mutex);
  if (eal == nullptr) {
    eal = new Eal(arguments);
    starter = getpid();
    started = eal->init();
  }
  if (starter != getpid()) {
    return Error{Status::forked,
                 "dpdk: EAL was started by the parent of this process, and a child cannot use it. "
                 "Fix: open the device in one process only, before or after fork"};
  }
  if (!started) return started.error();
  if (!arguments.empty() && arguments != eal->given_) {
    return Error{Status::invalid_argument,
                 "dpdk: another device of this process has started EAL with other arguments (\"" +
                     eal->given_ +
                     "\"). Fix: leave eal= out, or give the same to the first device"};
  }
  return eal;
}

Result<void> Eal::init() {
  std::istringstream extra(given_);
  // EAL keeps pointers to its arguments, so they live as long as the process.
  static auto& words = *new std::vector<std::string>{"urma", "--no-telemetry", "--iova-mode=va",
                                                     "--log-level=*:warning"};
  for (std::string word; extra >> word;) words.push_back(word);
  const auto has = [&](std::string_view option) {
    return std::ranges::any_of(words, [&](const auto& word) { return word.starts_with(option); });
  };
  const bool own_lcores = has("-l") || has("--lcores") || has("-c");
  if (!own_lcores) words.push_back(lcores());
  const bool own_nics = has("-a") || has("--allow") || has("-b") || has("--no-pci");
  if (!own_nics) words.insert(words.end(), {"-a", no_nic});
  const bool own_memory = has("--no-huge") || has("--in-memory") || has("--huge") ||
                          has("--file-prefix") || has("--legacy-mem");
  huge_pages_ = own_memory ? !has("--no-huge") : free_huge_bytes() >= enough_huge_bytes;
  if (!own_memory && huge_pages_) {
    // Memory in one file per size, because a vhost peer maps at most 8.
    words.emplace_back("--in-memory");
    words.emplace_back("--single-file-segments");
  }
  if (!huge_pages_) {
    if (!has("--no-huge")) words.emplace_back("--no-huge");
    if (!has("-m")) {
      words.emplace_back("-m");
      words.emplace_back(reserved_mb);
    }
    if (!has("--no-shconf")) words.emplace_back("--no-shconf");
  }
  for (const std::string& word : words) command_line_ += (&word == words.data() ? "" : " ") + word;
  static auto& pointers = *new std::vector<char*>;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  EalLog& log = EalLog::of_this_process();
  if (!log.capture()) return error(Status::no_resources, "dpdk: no memory for EAL's log");
  const KeptAffinity affinity;
  const KeptOpenFiles open_files;
  const SignalsBlocked signals;
  rte_errno = 0;
  if (rte_eal_init(static_cast<int>(words.size()), pointers.data()) >= 0) {
    silence("libbpf.so.1", "libbpf_set_print");
    silence("libxdp.so.1", "libxdp_set_print");
    return {};
  }
  const std::string why = log.quote();
  return Error{Status::no_resources, "dpdk: EAL cannot be started in this process: " + why + " (" +
                                         rte_strerror(rte_errno) + "; arguments: " + command_line_ +
                                         "). Fix: " + cure_of(why)};
}

NoSigpipe::NoSigpipe() {
  sigset_t pending;
  sigset_t before;
  sigset_t pipe;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

NoSigpipe::~NoSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  constexpr timespec at_once{};
  if (!was_pending_) sigtimedwait(&pipe, nullptr, &at_once);
  if (!was_blocked_) pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

}  // namespace urma::drivers::dpdk
