// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace urma::apps::perf {

// Memory that two processes of one user on one host share: a file in /dev/shm whose name is removed
// as soon as both have opened it. Before a file is created, files of killed processes are removed.
class ShmWindow {
 public:
  // Creates zeroed memory, of which each page has been touched.
  static ShmWindow make(size_t bytes);
  // Opens the file that another process has created, and removes its name.
  static ShmWindow open(const std::string& name, size_t bytes);

  ShmWindow(ShmWindow&&) noexcept;
  ShmWindow& operator=(ShmWindow&&) = delete;
  ~ShmWindow();

  const std::string& name() const { return name_; }
  // Removes the name, so that no other process can open the file.
  void forget_name();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  ShmWindow(std::string name, int descriptor);
  void map(size_t bytes);

  std::string name_;     // empty after the name was removed
  int descriptor_ = -1;  // locked while the file has a name, to show that its creator is alive
  std::span<std::byte> bytes_;
};

}  // namespace urma::apps::perf
