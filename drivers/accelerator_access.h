// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "base/cuda.h"
#include "drivers/accelerator_board.h"
#include "drivers/remote_access.h"

namespace urma::drivers {

// Copies between registered memory of GPUs of two processes on one host (CUDA IPC), by a GPU, in
// one step. It is not a device of its own: any port that has no RemoteAccess gets it when memory of
// a GPU is registered. Where the processes cannot find each other (another host, user or container)
// pairs fail, and works go in packets.
//
// The owner of memory cannot take an open mapping away from another process, but that process
// begins no copy once its pair is closed, and the owner waits for copies that have begun
// (AcceleratorBoard). For a process that can open them, tokens are therefore advice, as in a
// window.
class AcceleratorAccess final : public RemoteAccess {
 public:
  // `random`: two secret numbers.
  explicit AcceleratorAccess(const std::array<uint64_t, 2>& random);
  ~AcceleratorAccess() override;
  AcceleratorAccess(const AcceleratorAccess&) = delete;
  AcceleratorAccess& operator=(const AcceleratorAccess&) = delete;

  uint32_t least_bytes() const override { return 1; }
  uint32_t most_bytes() const override { return 64 << 20; }
  bool of_accelerators() const override { return true; }
  Duration longest_stop() const override { return std::chrono::seconds(1); }
  Handle make(bool opens) override;
  void connect(Handle end, const Description& other, const Eid& address) override;
  void stop(Handle end) override;
  size_t news(std::span<News> out) override;
  Begun begin(Handle end, const Task& task) override;
  void flush() override;
  size_t ended(std::span<Ended> out) override;
  std::optional<Duration> look_again() const override;
  std::optional<Opened> opened(std::span<const std::byte> memory, Rights rights,
                               Rights wanted) const override;

 private:
  static constexpr uint32_t most_ends = AcceleratorBoard::lines;
  static constexpr size_t depth = 32;  // copies of an end
  // How often the end of a copy is looked for before the driver is asked whether it has failed.
  static constexpr uint32_t looks_between_questions = 64;

  // Memory of the other process that this one has opened.
  struct Mapping {
    uint32_t key;
    uint64_t address;  // in the other process
    uint64_t bytes;
    CUdeviceptr here;
    CUcontext context = nullptr;  // in which it was opened, unless it is of this process
  };
  struct Running {
    uint32_t copy;    // its number in the line
    uint32_t number;  // the caller's
    bool failed;
  };
  enum class State : uint8_t { vacant, made, connected, stopping };
  struct End {
    State state = State::vacant;
    bool passive = false;
    uint32_t generation = 0;
    uint32_t line = 0;    // passive: of our board; active: of the other one's
    uint32_t opened = 0;  // the generation of the line in which copies may be begun
    uint32_t closed = 0;  // passive: how many were begun when it was closed
    int process = -1;     // a descriptor of the process at the other end
    std::optional<AcceleratorBoard> other{};
    CudaContext context{};  // active: in which its stream is
    uint32_t copies = 0;    // active: that were begun
    uint32_t marked = 0;    // active: the latest whose end the GPU will store
    CUstream stream = nullptr;
    CUdeviceptr ended = 0;  // active: the line's `ended`, as the GPU sees it
    std::vector<Mapping> mappings{};
    std::vector<Running> running{};
    uint32_t looks = 0;
  };

  Handle handle_of(const End& end) const {
    return {static_cast<uint32_t>(&end - ends_.data()), end.generation};
  }
  End* find(Handle handle);
  AcceleratorBoard::Line& line_of(const End& end) const;
  void tell(const End& end, News::What what, const Description& own = {});
  bool open_process(End& end, const AcceleratorBoard::Name& name);
  static bool open_line(End& end, uint32_t line, uint32_t generation);
  bool open_stream(End& end, int number);
  const Mapping* mapping_for(End& end, uint32_t key);
  bool copy(const End& end, const Task& task, CUdeviceptr there);
  static void mark(End& end);
  void question(End& end);
  static bool has_exited(const End& end);
  bool is_quiet(const End& end) const;
  std::span<End> used_ends() { return std::span(ends_).first(used_ends_); }
  void release(End& end);
  uint32_t enter(uint64_t address, uint64_t bytes, const std::array<std::byte, 64>& handle) const;

  mutable std::optional<AcceleratorBoard> board_;
  mutable uint32_t next_key_ = 1;
  mutable uint32_t next_entry_ = 0;
  std::vector<End> ends_{most_ends};
  uint32_t used_ends_ = 0;  // all behind are vacant
  bool begun_ = false;      // copies, since `flush`
  std::vector<News> news_;
};

}  // namespace urma::drivers
