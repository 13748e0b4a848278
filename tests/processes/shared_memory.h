// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace urma::test {

// An object in memory that belongs to no file. Another process maps it by its path as long as this
// object exists.
template <class T>
class SharedMemory {
 public:
  SharedMemory() : file_(memfd_create("shared", MFD_CLOEXEC)) {
    if (ftruncate(file_, sizeof(T)) != 0) return;
    void* const at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    object_ = static_cast<T*>(at);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    munmap(object_, sizeof(T));
    close(file_);
  }

  T& operator*() const { return *object_; }
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  }

 private:
  int file_;
  T* object_ = nullptr;
};

}  // namespace urma::test
