// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "drivers/cxl/mapping.h"
#include "urma/core/setting.h"

namespace urma::drivers::cxl {

// A device string of this driver, taken apart. It does not know what the file looks like.
struct WindowSettings {
  std::string path;    // if empty, the window of this user in /dev/shm
  uint64_t bytes = 0;  // 0: the size of the file, or the default, of which little is taken at first
  // Whether processors keep the window's memory coherent. If it has no value, the window stays as
  // it was made, and a new window is coherent.
  std::optional<bool> coherent = {};
  // Whether each segment is a file of its own, which is handed over to peers (hand_over.h).
  bool hands_over = false;
  uint64_t double_seed = 0;  // if not 0, caches are simulated (ActedCaches)
  // Where the device's first engine is, if the port is for another one of it.
  struct First {
    uint32_t slot = 0;
    uint32_t generation = 0;
  };
  std::optional<First> first = {};
  SettingList options = {};  // as they were read, for Device::settings
};

// Opens a window: chooses its file and size, makes the file or examines the existing one, and
// reports what is wrong with it. Holds the window's lock meanwhile, so that only one of several
// processes makes the window. One opener opens one window, and is used by one thread.
class Opener {
 public:
  explicit Opener(const WindowSettings& settings);

  Result<std::unique_ptr<Mapping>> open();
  // Returns whether users other than this one may open the window, too.
  bool others_entitled() const { return others_entitled_; }

 private:
  struct Says;

  static Says read(const Header& header);
  static bool unfinished(const Says& says);
  const BackingFile& file() const { return mapping_->file(); }
  Result<void> prepare_file();
  Result<void> size_file();
  Result<uint64_t> choose_size(uint64_t file_bytes) const;
  int take_memory(uint64_t bytes) const;
  Result<void> map();
  Result<void> make();
  Result<void> find();
  Result<void> examine(const Says& says) const;

  const WindowSettings& settings_;
  WindowErrors errors_;
  std::unique_ptr<Mapping> mapping_;
  uint64_t bytes_ = 0;
  bool fresh_ = false;
  bool mapped_ = false;
  bool others_entitled_ = false;
};

}  // namespace urma::drivers::cxl
