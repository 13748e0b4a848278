// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "apps/common/failure.h"

namespace urma::apps::perf {

// A file that is either complete or does not exist. It is created immediately, beside its final
// place, so that an unusable path is found before anything is measured.
class WholeFile {
 public:
  // `option` names the file in errors: --json-file.
  WholeFile(std::string option, std::string path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  // Called at most once.
  void write(std::string_view text);

 private:
  Failure failure(const char* doing) const;

  std::string option_;
  std::string path_;
  std::string temporary_;  // empty if `path_` is not a regular file, and is written directly
  int descriptor_ = -1;
};

}  // namespace urma::apps::perf
