// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "apps/urma_info/checks.h"
#include "apps/urma_info/limits.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace apps::info;
namespace fs = std::filesystem;

constexpr uint64_t mebibyte = 1 << 20;

// A simulated machine: files below a directory, and answers to questions that no file answers.
class Machine {
 public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "urma-doctor-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root_ = name;
    host.root = root_;
    host.uid = getuid();
    host.space = [this](const std::string&) { return space; };
    host.may_write = [this](const std::string& path) { return !closed.contains(inside(path)); };
    host.held = [this](const std::string& path) { return held.contains(inside(path)); };
    host.open = [this](const std::string& device) -> Result<void> {
      if (device == broken) return error;
      return {};
    };
  }
  Machine(const Machine&) = delete;
  ~Machine() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void file(const std::string& path, const std::string& text = "") const {
    const fs::path where = host.at(path);
    fs::create_directories(where.parent_path());
    std::ofstream(where) << text;
    REQUIRE(fs::exists(where));
  }
  void directory(const std::string& path, mode_t mode = 0700) const {
    fs::create_directories(host.at(path));
    REQUIRE(chmod(host.at(path).c_str(), mode) == 0);
  }
  void remove(const std::string& path) const { fs::remove_all(host.at(path)); }
  // Makes a file that is some minutes old.
  void old(const std::string& path) const {
    fs::last_write_time(host.at(path), fs::file_time_type::clock::now() - std::chrono::minutes(5));
  }
  std::string user() const { return std::to_string(host.uid); }

  Host host;
  std::optional<Host::Space> space = Host::Space{1024 * mebibyte, 512 * mebibyte};
  std::set<std::string> closed;  // paths that this user may not write
  std::set<std::string> held;    // paths that a living process holds
  std::string broken;            // a device that cannot be opened
  Error error;

 private:
  std::string inside(const std::string& path) const { return path.substr(root_.string().size()); }
  fs::path root_;
};

void says(const Finding& finding, Level level, std::string_view what, std::string_view cure = "") {
  INFO(finding.what << " | Fix: " << finding.fix);
  CHECK(finding.level == level);
  CHECK(finding.what.find(what) != std::string::npos);
  CHECK(finding.fix.find(cure) != std::string::npos);
  // A finding has a fix exactly if its level is not ok.
  CHECK(finding.fix.empty() == (finding.level == Level::ok));
}

TEST_CASE(
    "doctor: every check has a name of its own, and has a result on a machine without any file") {
  Machine machine;
  std::set<std::string_view> names;
  for (const Check& check : all_checks()) {
    INFO(check.name);
    CHECK(names.insert(check.name).second);
    const Finding finding = check.run(machine.host);
    CHECK_FALSE(finding.what.empty());
    CHECK(finding.fix.empty() == (finding.level == Level::ok));
  }
}

TEST_CASE("ports of DPDK: whether the driver is there, and what bound NICs need") {
  const Machine machine;
  says(check_dpdk(machine.host), Level::ok, "no NIC is bound");
  Machine without;
  without.broken = "dpdk:net_ring0,pair=doctor?ip=10.9.0.1/24";
  without.error = {Status::unsupported, "dpdk: no driver. Fix: apt-get install libdpdk-dev"};
  says(check_dpdk(without.host), Level::ok, "if dpdk: devices are wanted: apt-get install");
  without.error = {Status::no_resources, "dpdk: EAL. Fix: more memory"};
  says(check_dpdk(without.host), Level::warn, "does not open: dpdk: EAL", "more memory");

  Machine bound;
  bound.file("/sys/bus/pci/drivers/vfio-pci/0000:3b:00.0");
  bound.file("/sys/bus/pci/drivers/vfio-pci/new_id");
  bound.file("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  says(check_dpdk(bound.host), Level::fix, "0000:3b:00.0 (NUMA node 1); 0M of huge pages",
       "sysctl vm.nr_hugepages");
  bound.file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "127\n");
  says(check_dpdk(bound.host), Level::fix, "254M of huge pages", "sysctl vm.nr_hugepages");
  bound.file("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
  says(check_dpdk(bound.host), Level::ok, "1278M of huge pages are free");
  bound.file("/dev/vfio/17");
  bound.closed.insert("/dev/vfio/17");
  says(check_dpdk(bound.host), Level::fix, "may not open /dev/vfio/17",
       "chown " + bound.user() + " /dev/vfio/17");
}

TEST_CASE("RDMA adapters: each has to open") {
  Machine machine;
  says(check_verbs(machine.host), Level::ok, "no RDMA adapter");
  machine.file("/sys/class/infiniband/mlx5_0");
  machine.file("/sys/class/infiniband/rxe0");
  says(check_verbs(machine.host), Level::ok, "opens on mlx5_0, rxe0");
  machine.broken = "verbs:rxe0";
  machine.error = {Status::unsupported, "verbs: datagrams of 1024 bytes. Fix: raise the MTU"};
  says(check_verbs(machine.host), Level::warn, "rxe0 does not open: verbs: datagrams",
       "raise the MTU");
}

TEST_CASE("doctor: if a device cannot be opened, its own error and cure are reported") {
  Machine machine;
  says(check_window_device(machine.host), Level::ok, "opens");
  says(check_network_device(machine.host), Level::ok, "opens");
  machine.error = {Status::io_error, "cxl: the window is odd. Fix: remove it"};
  machine.broken = "cxl:";
  says(check_window_device(machine.host), Level::fix, "the window is odd", "remove it");
  says(check_network_device(machine.host), Level::ok, "opens");
  machine.broken = "udp:";
  says(check_network_device(machine.host), Level::fix, "the window is odd", "remove it");
}

TEST_CASE("doctor: shared memory is there, writable, and has room") {
  Machine machine;
  says(check_shared_memory(machine.host), Level::ok, "1024M, 512M of them free");
  machine.space = Host::Space{64 * mebibyte, 40 * mebibyte};
  says(check_shared_memory(machine.host), Level::warn, "small segments", "--shm-size=1g");
  machine.space = Host::Space{64 * mebibyte, 1 * mebibyte};
  says(check_shared_memory(machine.host), Level::fix, "no room", "remount,size=1G");
  machine.closed.insert("/dev/shm");
  says(check_shared_memory(machine.host), Level::fix, "cannot be written", "chmod 1777 /dev/shm");
  machine.file("/proc/self/mounts", "tmpfs / tmpfs ro 0 0\ntmpfs /dev/shm tmpfs rw,size=1g 0 0\n");
  says(check_shared_memory(machine.host), Level::fix, "cannot be written", "chmod 1777 /dev/shm");
  machine.file("/proc/self/mounts",
               "tmpfs /dev/shm tmpfs rw 0 0\ntmpfs /dev/shm tmpfs ro,size=1g 0 0\n");
  says(check_shared_memory(machine.host), Level::fix, "read-only", "remount,rw /dev/shm");
  machine.space.reset();
  says(check_shared_memory(machine.host), Level::fix, "does not exist", "mount -t tmpfs");
}

TEST_CASE("doctor: the window's file is a file of this user, or does not exist yet") {
  Machine machine;
  const std::string path = "/dev/shm/urma-" + machine.user();
  says(check_window_file(machine.host), Level::ok, "does not exist yet");
  machine.file(path, std::string(2 * mebibyte, 'x'));
  says(check_window_file(machine.host), Level::ok, path + ", 2M");
  machine.remove(path);
  machine.directory(path);
  says(check_window_file(machine.host), Level::fix, "is not a file", "rm -r " + path);
  machine.host.uid += 1;  // this user does not own the file at the window's path
  machine.file("/dev/shm/urma-" + machine.user());
  says(check_window_file(machine.host), Level::fix, "another user", "rm /dev/shm/urma-");
}

TEST_CASE("doctor: names lie in a directory of this user alone") {
  Machine machine;
  const std::string run = "/run/user/" + machine.user();
  const std::string tmp = "/tmp/urma-" + machine.user();
  says(check_names(machine.host), Level::ok, tmp);
  machine.directory(run);
  says(check_names(machine.host), Level::ok, run + "/urma");
  machine.host.environment["XDG_RUNTIME_DIR"] = "/mine";
  says(check_names(machine.host), Level::warn, "XDG_RUNTIME_DIR=/mine", "unset XDG_RUNTIME_DIR");
  machine.directory("/mine");
  says(check_names(machine.host), Level::ok, "/mine/urma");
  machine.closed.insert("/mine");
  says(check_names(machine.host), Level::warn, "names are in " + run, "unset");
  machine.host.environment["XDG_RUNTIME_DIR"] = "mine";  // not an absolute path
  says(check_names(machine.host), Level::warn, "names are in " + run, "unset");

  machine.host.environment.clear();
  machine.directory(run + "/urma", 0755);
  says(check_names(machine.host), Level::fix, "open to other users", "chmod 700 " + run);
  machine.remove(run + "/urma");
  machine.file(run + "/urma");
  says(check_names(machine.host), Level::fix, "not a directory of this user", "rm -r " + run);
  machine.host.uid += 1;
  machine.directory("/tmp/urma-" + machine.user());
  says(check_names(machine.host), Level::fix, "not a directory of this user", "XDG_RUNTIME_DIR");
}

TEST_CASE("doctor: reports files that no process holds, but not held or young files") {
  Machine machine;
  const std::string names = "/tmp/urma-" + machine.user() + "/names/127.0.0.1";
  says(check_stale_files(machine.host), Level::ok, "none");
  for (const char* name : {"/.lock", "/alive", "/dead", "/young"}) machine.file(names + name);
  for (const char* name : {"/.lock", "/alive", "/dead"}) machine.old(names + name);
  machine.held.insert(names + "/alive");
  says(check_stale_files(machine.host), Level::warn, "1 file of", "find /tmp/urma-");
  says(check_stale_files(machine.host), Level::warn, names + "/dead", "flock -n {} rm {} \\;");
  machine.held.insert(names + "/dead");
  says(check_stale_files(machine.host), Level::ok, "none");
  machine.file("/dev/shm/urma_perf.0123456789abcdef");
  machine.file("/dev/shm/urma-" + machine.user());  // a window's file stays when no process uses it
  says(check_stale_files(machine.host), Level::warn, "1 file of",
       "find /dev/shm -name 'urma_perf.*'");
  machine.held.clear();
  says(check_stale_files(machine.host), Level::warn, "3 files of", "find");
}

TEST_CASE("doctor: says whether dax devices exist and may be opened") {
  Machine machine;
  says(check_dax(machine.host), Level::ok, "none here");
  machine.file("/dev/dax0.0");
  machine.file("/dev/null");
  says(check_dax(machine.host), Level::ok, "may open /dev/dax0.0");
  machine.closed.insert("/dev/dax0.0");
  says(check_dax(machine.host), Level::warn, "may not open /dev/dax0.0", "chmod a+rw /dev/dax0.0");
}

TEST_CASE("doctor: says whether huge pages are on, on request, off, or unknown to the kernel") {
  Machine machine;
  const std::string enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
  says(check_huge_pages(machine.host), Level::ok, "no transparent huge pages");
  machine.file(enabled, "always madvise [never]\n");
  says(check_huge_pages(machine.host), Level::warn, "off", "echo madvise > " + enabled);
  machine.file(enabled, "always [madvise] never\n");
  says(check_huge_pages(machine.host), Level::ok, "madvise; windows in /dev/shm have pages of 4K");
  machine.file("/proc/self/mounts",
               "tmpfs /dev/shm tmpfs rw,huge=within_size 0 0\nx /y z rw 0 0\n");
  machine.file("/proc/sys/vm/nr_hugepages", "7\n");
  says(check_huge_pages(machine.host), Level::ok, "/dev/shm have them; 7 reserved");
  machine.file("/proc/self/mounts",
               "tmpfs /dev/shm tmpfs rw 0 0\ntmpfs /x tmpfs huge=always 0 0\n");
  machine.file(enabled, "nonsense\n");
  says(check_huge_pages(machine.host), Level::ok, "nonsense; windows in /dev/shm have pages of 4K");
}

// Returns a line in the format of /proc/self/limits.
std::string limits_line(const std::string& name, const std::string& soft) {
  return "Limit  Soft Limit  Hard Limit  Units\n" + name + "    " + soft + "    unlimited  any\n";
}

TEST_CASE("doctor: reports the limits of the process") {
  Machine machine;
  const auto limit = [&](const std::string& name, const std::string& soft) {
    machine.file("/proc/self/limits", limits_line(name, soft));
    return process_limit(machine.host, name);
  };
  CHECK_FALSE(process_limit(machine.host, "Max open files"));
  CHECK(limit("Max open files", "unlimited") == UINT64_MAX);
  CHECK_FALSE(limit("Max open files", "none"));

  limit("Max locked memory", "65536");
  says(check_locked_memory(machine.host), Level::ok, "64K");
  limit("Max locked memory", "unlimited");
  says(check_locked_memory(machine.host), Level::ok, "unlimited");

  limit("Max address space", "1073741824");
  says(check_address_space(machine.host), Level::fix, "1024M", "ulimit -v unlimited");
  limit("Max address space", "unlimited");
  says(check_address_space(machine.host), Level::ok, "not limited");
  machine.file("/proc/sys/vm/overcommit_memory", "2\n");
  says(check_address_space(machine.host), Level::warn, "overcommit", "vm.overcommit_memory=0");

  says(check_open_files(machine.host), Level::ok, "unknown");
  limit("Max open files", "32");
  says(check_open_files(machine.host), Level::fix, "32 at most", "ulimit -n 1024");
  limit("Max open files", "128");
  says(check_open_files(machine.host), Level::warn, "128 at most", "ulimit -n 1024");
  limit("Max open files", "1024");
  says(check_open_files(machine.host), Level::ok, "1024 at most");
  limit("Max open files", "unlimited");
  says(check_open_files(machine.host), Level::ok, "unlimited");

  machine.host.uid = 1000;
  limit("Max processes", "10");
  says(check_processes(machine.host), Level::warn, "10 processes", "ulimit -u 4096");
  machine.host.uid = 0;  // this limit does not apply to root
  says(check_processes(machine.host), Level::ok, "10 processes");
  limit("Max processes", "unlimited");
  says(check_processes(machine.host), Level::ok, "not limited");
}

TEST_CASE("doctor: reads control groups of both versions, their parents, and hidden ones") {
  Machine machine;
  const auto groups = [&](const char* controller) {
    return control_groups(machine.host, controller);
  };
  CHECK(groups("memory").empty());
  machine.file("/proc/self/cgroup", "0::/a/b\n");
  CHECK(groups("memory").empty());
  machine.directory("/sys/fs/cgroup/a");
  CHECK(groups("memory") == std::vector<std::string>{"/sys/fs/cgroup/a", "/sys/fs/cgroup"});
  machine.directory("/sys/fs/cgroup/a/b");
  CHECK(groups("memory").front() == "/sys/fs/cgroup/a/b");

  machine.file("/proc/self/cgroup", "garbage\n4:memory:/a\n3:cpu,cpuacct:/x\n2:cpuset:/y\n");
  CHECK(groups("pids").empty());
  machine.directory("/sys/fs/cgroup/memory/a");
  CHECK(groups("memory").front() == "/sys/fs/cgroup/memory/a");
  machine.directory("/sys/fs/cgroup/cpu/x");
  CHECK(groups("cpu").front() == "/sys/fs/cgroup/cpu/x");
  machine.directory("/sys/fs/cgroup/cpu,cpuacct");
  CHECK(groups("cpu") == std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct"});
}

TEST_CASE("doctor: reports the memory limit of a container") {
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/c\n");
  const std::string group = "/sys/fs/cgroup/c";
  says(check_container_memory(machine.host), Level::ok, "not limited");
  machine.file(group + "/memory.max", "max\n");
  says(check_container_memory(machine.host), Level::ok, "not limited");
  machine.file(group + "/memory.max", "1073741824\n");
  machine.file(group + "/memory.current", "104857600\n");
  says(check_container_memory(machine.host), Level::ok, "924M of 1024M left");
  machine.file(group + "/memory.max", "268435456\n");
  says(check_container_memory(machine.host), Level::warn, "156M of 256M", "docker update --memory");
  machine.file(group + "/memory.current", "251658240\n");
  says(check_container_memory(machine.host), Level::fix, "16M of 256M", "docker update --memory");
  // The group can free the memory of cached files.
  machine.file(group + "/memory.stat", "anon 1\ninactive_file 209715200\n");
  says(check_container_memory(machine.host), Level::warn, "216M of 256M", "docker");

  machine.file("/proc/self/cgroup", "4:memory:/one\n");
  const std::string one = "/sys/fs/cgroup/memory/one";
  machine.file(one + "/memory.limit_in_bytes", "9223372036854771712\n");
  says(check_container_memory(machine.host), Level::ok, "not limited");
  machine.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n");
  machine.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "99999999999\n");
  says(check_container_memory(machine.host), Level::fix, "0M of 32M left in /sys/fs/cgroup/memory;",
       "docker");
}

TEST_CASE("doctor: reports the processor limit of a container") {
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/c\n");
  const std::string quota = "/sys/fs/cgroup/c/cpu.max";
  says(check_container_processors(machine.host), Level::ok, "not limited");
  for (const char* none : {"max 100000\n", "max\n", "100000\n", "x 100000\n", "100000 0\n"}) {
    machine.file(quota, none);
    says(check_container_processors(machine.host), Level::ok, "not limited");
  }
  machine.file(quota, "50000 100000\n");
  says(check_container_processors(machine.host), Level::fix, "0.5 processors", "--cpus=2");
  machine.file(quota, "150000 100000\n");
  says(check_container_processors(machine.host), Level::warn, "1.5 processors", "--cpus=2");
  machine.file(quota, "400000 100000\n");
  says(check_container_processors(machine.host), Level::ok, "4 processors");
  machine.file("/sys/fs/cgroup/cpu.max", "20000 100000\n");  // the parent group has less
  says(check_container_processors(machine.host), Level::fix, "0.2 processors", "--cpus=2");

  machine.file("/proc/self/cgroup", "2:cpu:/one\n");
  machine.file("/sys/fs/cgroup/cpu/one/cpu.cfs_quota_us", "-1\n");
  machine.file("/sys/fs/cgroup/cpu/one/cpu.cfs_period_us", "100000\n");
  says(check_container_processors(machine.host), Level::ok, "not limited");
  machine.file("/sys/fs/cgroup/cpu/one/cpu.cfs_quota_us", "25000\n");
  says(check_container_processors(machine.host), Level::fix, "0.25 processors", "--cpus=2");
}

TEST_CASE("doctor: reports the limit of processes in a container") {
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/c\n");
  machine.file("/sys/fs/cgroup/c/pids.max", "max\n");
  says(check_processes(machine.host), Level::ok, "not limited");
  machine.file("/sys/fs/cgroup/c/pids.max", "100\n");
  machine.file("/sys/fs/cgroup/c/pids.current", "95\n");
  says(check_processes(machine.host), Level::fix, "5 more", "--pids-limit=1024");
  machine.file("/sys/fs/cgroup/c/pids.current", "50\n");
  says(check_processes(machine.host), Level::warn, "50 more", "/sys/fs/cgroup/c/pids.max");
  machine.file("/sys/fs/cgroup/c/pids.current", "101\n");
  says(check_processes(machine.host), Level::fix, "0 more", "docker");
  machine.file("/sys/fs/cgroup/c/pids.current", "3\n");
  says(check_processes(machine.host), Level::ok, "not limited");
}

TEST_CASE("doctor: reports the usable processors, and on how many cores they are") {
  Machine machine;
  const auto allow = [&](const std::string& list) {
    machine.file("/proc/self/status", "Name: x\nCpus_allowed_list:\t" + list + "\n");
  };
  says(check_processors(machine.host), Level::ok, "unknown");
  for (const char* nonsense : {"", "x", "1-x", "99999999"}) {
    allow(nonsense);
    says(check_processors(machine.host), Level::ok, "unknown");
  }
  machine.file("/sys/devices/system/cpu/online", "0-7\n");
  allow("0-3,6");
  says(check_processors(machine.host), Level::ok, "5 of 8 may be used, on 5 cores");
  allow("2");
  says(check_processors(machine.host), Level::warn,
       "1 of 8 may be used, on 1 core:", "taskset -pc 0-7 $$");
  for (const char* cpu : {"0", "4"}) {
    machine.file(
        std::string("/sys/devices/system/cpu/cpu") + cpu + "/topology/thread_siblings_list",
        "0,4\n");
  }
  allow("0,4");
  says(check_processors(machine.host), Level::warn, "2 of 8 may be used, on 1 core", "taskset");
  machine.file("/sys/devices/system/cpu/online", "0\n");
  allow("0");
  says(check_processors(machine.host), Level::warn, "1 of 1", "Threads::served");
}

TEST_CASE("doctor: reports whether the clock is read without a system call") {
  Machine machine;
  const std::string folder = "/sys/devices/system/clocksource/clocksource0/";
  machine.host.clock_ns = 25;
  says(check_clock(machine.host), Level::ok, "unknown, read in 25 ns");
  machine.file(folder + "current_clocksource", "hpet\n");
  machine.host.clock_ns = 900;
  says(check_clock(machine.host), Level::warn, "no faster one", "stable TSC");
  machine.file(folder + "available_clocksource", "hpet kvm-clock acpi_pm \n");
  says(check_clock(machine.host), Level::warn, "hpet, read in 900 ns",
       "echo kvm-clock > " + folder);
  machine.file(folder + "available_clocksource", "tsc hpet\n");
  says(check_clock(machine.host), Level::warn, "hpet", "echo tsc > " + folder);
  machine.file(folder + "current_clocksource", "tsc\n");
  says(check_clock(machine.host), Level::warn, "no faster one", "stable TSC");
}

TEST_CASE("doctor: reports interfaces that are down, or whose MTU is too small for a packet") {
  Machine machine;
  const auto interface = [&](const std::string& name, const char* flags, const char* mtu) {
    machine.file("/sys/class/net/" + name + "/flags", flags);
    machine.file("/sys/class/net/" + name + "/mtu", mtu);
  };
  says(check_interfaces(machine.host), Level::warn, "no interface is up", "ip link set dev lo up");
  interface("eth1", "0x1002\n", "576\n");
  says(check_interfaces(machine.host), Level::warn, "no interface is up", "ip link set dev lo up");
  interface("lo", "0x9\n", "65536\n");
  says(check_interfaces(machine.host), Level::ok, "MTU: lo 65536");
  machine.host.loopback_down = true;
  says(check_interfaces(machine.host), Level::fix, "lo is down", "ip link set dev lo up");
  machine.host.loopback_down = false;
  interface("eth0", "0x1003\n", "1168\n");
  says(check_interfaces(machine.host), Level::ok, "eth0 1168, lo 65536");
  interface("eth0", "0x1003\n", "1167\n");
  says(check_interfaces(machine.host), Level::fix, "The MTU of eth0 is too small",
       "ip link set dev eth0 mtu 1500");
}

TEST_CASE("doctor: reports the limits of socket buffers, and whether this user may exceed them") {
  Machine machine;
  const auto limits = [&](const char* receive, const char* send) {
    machine.file("/proc/sys/net/core/rmem_max", receive);
    machine.file("/proc/sys/net/core/wmem_max", send);
  };
  says(check_socket_buffers(machine.host), Level::ok, "unknown");
  limits("4194304\n", "4194304\n");
  says(check_socket_buffers(machine.host), Level::ok, "rmem_max 4096K, wmem_max 4096K");
  limits("4194304\n", "212992\n");
  says(check_socket_buffers(machine.host), Level::warn, "wmem_max 208K",
       "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304");
  machine.file("/proc/self/status", "CapEff:\t0000000000000fff\n");
  says(check_socket_buffers(machine.host), Level::warn, "208K", "sysctl");
  machine.file("/proc/self/status", "CapEff:\t0000000000001000\n");
  says(check_socket_buffers(machine.host), Level::ok, "may exceed them");
}

TEST_CASE("doctor: reports features that the kernel lacks") {
  Machine machine;
  machine.file("/proc/sys/kernel/osrelease", "6.1.0\n");
  Host::Kernel& kernel = machine.host.kernel;
  says(check_kernel(machine.host), Level::ok, "6.1.0 has UDP GSO");
  kernel.segmentation = false;
  says(check_kernel(machine.host), Level::warn, "lacks UDP GSO:", "Linux 5.4");
  kernel.coalescing = false;
  says(check_kernel(machine.host), Level::warn, "lacks UDP GSO, UDP GRO:", "Linux 5.4");
  for (bool* one : {&kernel.futex, &kernel.timers, &kernel.file_locks}) {
    *one = false;
    says(check_kernel(machine.host), Level::fix, "lacks, or a sandbox forbids", "seccomp");
    *one = true;
  }
}

TEST_CASE("doctor: every check has a result on this machine") {
  const Host host = this_host();
  CHECK(host.clock_ns > 0);
  CHECK(host.text("/proc/self/limits"));
  for (const Check& check : all_checks()) {
    INFO(check.name);
    CHECK_FALSE(check.run(host).what.empty());
  }
}

}  // namespace
}  // namespace urma::test
