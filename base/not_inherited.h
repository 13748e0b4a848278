#pragma once

namespace urma {

// While it lives, a child made by fork() finds an idle eventfd under this descriptor's number and
// not what its parent has there: a port stays taken, and a file locked, for as long as any process
// has them. The number stays in use, so that copies of the owner in the child may close it as ever.
// Any thread.
class NotInherited {
 public:
  NotInherited() = default;
  // Throws std::bad_alloc, as `new` does. Nothing for a negative number.
  explicit NotInherited(int descriptor);
  NotInherited(NotInherited&& other) noexcept;
  NotInherited& operator=(NotInherited&& other) noexcept;
  // Before the descriptor is closed: its number may be another one's then.
  ~NotInherited();

 private:
  int descriptor_ = -1;
};

}  // namespace urma
