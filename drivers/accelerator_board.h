// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace urma::drivers {

// A page of memory that processes of one host share about the memory of their GPUs. Its owner makes
// it; processes of the same user that were told its name open it. The owner writes the list of its
// memory, and whether others may begin copies; each of the others counts its copies in a line of
// its own.
class AcceleratorBoard {
 public:
  // An allocation of the owner's GPU that others may open.
  struct Entry {
    std::atomic<uint32_t> key;  // 0: none. It changes whenever the rest of the entry does
    uint64_t address;           // of its first byte, in the owner
    uint64_t bytes;
    std::array<std::byte, 64> handle;  // of the driver (CUDA IPC)
  };
  static constexpr uint32_t entries = 256;

  // The copies that one process makes. It counts each before it begins it. The owner closes the
  // line by changing its generation, in the same word: so a copy is either not counted, and not
  // begun, or the owner knows of it and waits until it has ended. The GPU itself stores `ended`:
  // then the owner need not wait for a process that was stopped meanwhile. A line is used again by
  // another process, in another generation.
  struct Line {
    alignas(64) std::atomic<uint64_t> begun;  // generation << 32 | the number of the latest copy
    alignas(64) std::atomic<uint32_t> ended;  // the number of the latest copy that has ended
  };
  static constexpr uint32_t lines = 256;

  struct Content {
    uint64_t version;
    std::array<uint64_t, 2> random;  // a process number may belong to another process by now
    std::array<Entry, entries> entry;
    std::array<Line, lines> line;
  };

  // Where to find a board.
  struct Name {
    uint32_t process = 0;
    uint32_t descriptor = 0;
    std::array<uint64_t, 2> random{};
  };

  // Makes a board. `random`: two secret numbers. Returns nothing if the system refuses it.
  static std::optional<AcceleratorBoard> make(const std::array<uint64_t, 2>& random);
  // Opens that of another process. Returns nothing if that process is not here, or of another user.
  static std::optional<AcceleratorBoard> open(const Name& name);
  AcceleratorBoard(AcceleratorBoard&& other) noexcept;
  AcceleratorBoard& operator=(AcceleratorBoard&& other) noexcept;
  ~AcceleratorBoard();

  Content& content() const { return *content_; }
  static constexpr size_t bytes = (sizeof(Content) + 4095) / 4096 * 4096;
  const Name& name() const { return name_; }

 private:
  AcceleratorBoard(int descriptor, Content* content, const Name& name)
      : descriptor_(descriptor), content_(content), name_(name) {}

  static Content* map(int descriptor);

  static constexpr uint64_t version = 1;

  int descriptor_ = -1;
  Content* content_ = nullptr;
  Name name_;
};

}  // namespace urma::drivers
