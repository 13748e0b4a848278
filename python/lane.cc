// SPDX-License-Identifier: Apache-2.0
#include "python/lane.h"

#include <string>

namespace urma::python {
namespace {

// Copies of fewer bytes take less time than passing the GIL to another thread and back.
constexpr size_t least_unlocked = 64 * 1024;

void check(Status status, const char* call) {
  if (status != Status::ok) {
    raise(error(status, std::string(call) + ": " + std::string(name(status)) + ": " +
                            std::string(describe(status).meaning)));
  }
}

template <class Function>
Status copy(size_t bytes, Function&& function) {
  return bytes < least_unlocked ? function() : unlocked(function);
}

// Calls the function with a word of the type that has `size` bytes.
template <class Function>
uint64_t with_word(const py::object& size, const char* call, Function&& function) {
  uint64_t previous = 0;
  const auto change = [&]<class Word>(Word) {
    Word before = 0;
    check(function(before), call);
    previous = before;
  };
  switch (integer_of(size, "size", 1, 8)) {
    case 1:
      change(uint8_t{});
      break;
    case 2:
      change(uint16_t{});
      break;
    case 4:
      change(uint32_t{});
      break;
    case 8:
      change(uint64_t{});
      break;
    default:
      refuse(PyExc_ValueError, std::string(call) +
                                   ": size is the size of the word in bytes. Fix: give 1, 2, 4 "
                                   "or 8");
  }
  return previous;
}

uint64_t offset_of(const py::object& offset) { return integer_of(offset, "offset", 0, UINT64_MAX); }

}  // namespace

void LaneObject::write(const py::object& data, const py::object& offset) {
  const View from(data, false, "data");
  const uint64_t at = offset_of(offset);
  check(copy(from.bytes().size(), [&] { return lane_.write(from.bytes(), at); }), "lane.write");
}

void LaneObject::read(const py::object& into, const py::object& offset) {
  const View to(into, true, "into");
  const uint64_t at = offset_of(offset);
  check(copy(to.bytes().size(), [&] { return lane_.read(to.bytes(), at); }), "lane.read");
}

uint64_t LaneObject::fetch_add(const py::object& offset, const py::object& operand,
                               const py::object& size) {
  return with_word(size, "lane.fetch_add", [&]<class Word>(Word& before) {
    return lane_.fetch_add<Word>(
        offset_of(offset), static_cast<Word>(word_of(operand, "operand", sizeof(Word))), before);
  });
}

uint64_t LaneObject::swap(const py::object& offset, const py::object& desired,
                          const py::object& size) {
  return with_word(size, "lane.swap", [&]<class Word>(Word& before) {
    return lane_.swap<Word>(offset_of(offset),
                            static_cast<Word>(word_of(desired, "desired", sizeof(Word))), before);
  });
}

uint64_t LaneObject::compare_swap(const py::object& offset, const py::object& expected,
                                  const py::object& desired, const py::object& size) {
  return with_word(size, "lane.compare_swap", [&]<class Word>(Word& before) {
    return lane_.compare_swap<Word>(
        offset_of(offset), static_cast<Word>(word_of(expected, "expected", sizeof(Word))),
        static_cast<Word>(word_of(desired, "desired", sizeof(Word))), before);
  });
}

void define_lane(py::module_& module) {
  using py::arg;
  py::class_<LaneObject>(module, "Lane",
                         "Copies to and from mapped memory at the speed of memory, for one thread.")
      .def("write", &LaneObject::write, arg("data"), arg("offset") = 0,
           "Copies data to the segment. Blocks until it is copied.")
      .def("read", &LaneObject::read, arg("into"), arg("offset") = 0,
           "Copies from the segment into writable memory.")
      .def("fetch_add", &LaneObject::fetch_add, arg("offset"), arg("operand"), py::kw_only(),
           arg("size") = 8, "Adds to a word, and returns its previous value.")
      .def("swap", &LaneObject::swap, arg("offset"), arg("desired"), py::kw_only(), arg("size") = 8,
           "Replaces a word, and returns its previous value.")
      .def("compare_swap", &LaneObject::compare_swap, arg("offset"), arg("expected"),
           arg("desired"), py::kw_only(), arg("size") = 8,
           "Replaces a word that equals expected, and returns its previous value.");
}

}  // namespace urma::python
