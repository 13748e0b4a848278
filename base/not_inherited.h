// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace urma {

// While this object exists, a child made by fork() finds an idle eventfd under this descriptor's
// number instead of the parent's open file: otherwise a UDP port would stay taken, and a file
// locked, for as long as any child keeps the descriptor open. The number stays in use, so copies of
// the owner in the child can close it as usual. Any thread may use it.
class NotInherited {
 public:
  NotInherited() = default;
  // Throws std::bad_alloc. Does nothing for a negative number.
  explicit NotInherited(int descriptor);
  NotInherited(NotInherited&& other) noexcept;
  NotInherited& operator=(NotInherited&& other) noexcept;
  // To be destroyed before the descriptor is closed: afterwards its number may belong to another
  // file.
  ~NotInherited();

 private:
  int descriptor_ = -1;
};

}  // namespace urma
