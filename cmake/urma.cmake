# SPDX-License-Identifier: Apache-2.0
# How this tree is built from its directories.

# Checks of undefined behaviour that the targets of a directory do without: it sets this variable.
define_property(TARGET PROPERTY URMA_UNCHECKED INITIALIZE_FROM_VARIABLE URMA_UNCHECKED)

# All of this project's own code is compiled with these options.
add_library(urma_options INTERFACE)
target_compile_features(urma_options INTERFACE cxx_std_20)
target_include_directories(urma_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(urma_options INTERFACE -fno-strict-aliasing)
# For all directories. This comes first, because one of them removes a warning again.
add_compile_options(-Wall -Wextra -Wconversion -Wshadow)
if(URMA_WERROR)
  target_compile_options(urma_options INTERFACE -Werror)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(urma_options INTERFACE -march=${URMA_MARCH})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Its string instructions take 30 cycles to begin, and code that reads their result waits for
  # them.
  target_compile_options(urma_options INTERFACE
    -mmemcpy-strategy=unrolled_loop:256:noalign,libcall:-1:noalign
    -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc warns about "a" + std::string (GCC bug 105329).
  target_compile_options(urma_options INTERFACE -Wno-restrict)
endif()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Only this compiler could link the static library.
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
endif()
if(URMA_PARANOID)
  target_compile_definitions(urma_options INTERFACE URMA_PARANOID)
endif()
if(URMA_SANITIZE)
  target_compile_options(urma_options INTERFACE -fsanitize=${URMA_SANITIZE}
                                                -fno-omit-frame-pointer)
  if(URMA_SANITIZE MATCHES undefined)
    set(unchecked $<TARGET_PROPERTY:URMA_UNCHECKED>)
    target_compile_options(urma_options INTERFACE
      $<$<BOOL:${unchecked}>:-fno-sanitize=${unchecked}>)
  endif()
  target_link_options(urma_options INTERFACE -fsanitize=${URMA_SANITIZE})
  # The thread sanitizer does not know fences, and warns about each. Models prove what the fences
  # order.
  if(URMA_SANITIZE STREQUAL thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(urma_options INTERFACE -Wno-tsan)
  endif()
endif()

# Static tracepoints in the library (base/probes.h), which need one header and no library. They are
# off by default, because a message in a window takes 0.7 % more instructions with them.
set(URMA_WITH_PROBES OFF CACHE STRING
    "Build with static tracepoints: ON, OFF, or AUTO, where sys/sdt.h is found")
set_property(CACHE URMA_WITH_PROBES PROPERTY STRINGS AUTO ON OFF)
set(URMA_HAS_PROBES FALSE)
if(URMA_WITH_PROBES)
  include(CheckIncludeFileCXX)
  unset(URMA_HAS_SDT CACHE)  # looked for in each run, because packages are installed later
  check_include_file_cxx(sys/sdt.h URMA_HAS_SDT)
  set(URMA_HAS_PROBES ${URMA_HAS_SDT})
  if(NOT URMA_HAS_SDT AND NOT URMA_WITH_PROBES STREQUAL "AUTO")
    message(FATAL_ERROR "URMA_WITH_PROBES needs sys/sdt.h. Fix: apt-get install systemtap-sdt-dev")
  endif()
  if(NOT URMA_HAS_SDT)
    message(STATUS "Static tracepoints are left out: sys/sdt.h was not found "
                   "(apt-get install systemtap-sdt-dev)")
  endif()
endif()

# For files that are compiled as one: a local name may hide one of another file.
function(urma_lets_names_hide target)
  target_compile_options(${target} PRIVATE
    -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>)
endfunction()

# The sources of this target are compiled eight at a time (UNITY_BUILD), which halves the processor
# time: most of it goes into headers. So no two of its sources may define the same name in their
# unnamed namespaces, nor one that a header of theirs declares, which another source would call. A
# definition that both need goes into a header, another one is renamed.
function(urma_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  urma_lets_names_hide(${target})
endfunction()

# In a tree for development, the programs of this directory run for seconds, so a shorter compile
# time is worth more than faster programs: only what computes most of the time gets `computes`.
# Without -O2, gcc 12 warns of overflows that cannot happen.
macro(urma_compile_fast)
  set(computes)
  if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    set(computes -O1)
    add_compile_options(-O0 $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  endif()
endmacro()

# urma_precompile(NAME HEADERS... [LIBRARIES libraries...]): headers that are compiled once, for the
# targets that urma_use_precompiled names. Those need the same options. Each file still includes
# what it uses, because two kinds of trees do without: those with a compiler launcher, as ccache
# caches no object that uses a precompiled header, and those of fuzzers, which give most layers an
# option of their own.
function(urma_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "LIBRARIES")
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT URMA_FUZZERS)
    file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
    add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
    target_link_libraries(${name} PRIVATE urma_options ${ARG_LIBRARIES})
    target_precompile_headers(${name} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# urma_use_precompiled(NAME TARGET): it uses the headers NAME.
function(urma_use_precompiled name target)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# A layer has hidden symbols, and is linked into the shared library.
function(urma_compile_as_layer target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                             CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  target_compile_definitions(${target} PRIVATE URMA_HAS_PROBES=$<BOOL:${URMA_HAS_PROBES}>)
endfunction()

# These take a fifth of the compile time of a layer.
urma_precompile(urma_layer_headers
  <algorithm> <functional> <memory> <optional> <span> <string> <vector>)
if(TARGET urma_layer_headers)
  urma_compile_as_layer(urma_layer_headers)
endif()

# urma_objects(NAME FILES...): the objects of one directory.
function(urma_objects name)
  add_library(urma_${name} OBJECT ${ARGN})
  target_link_libraries(urma_${name} PRIVATE urma_options)
  urma_compile_as_layer(urma_${name})
  urma_use_precompiled(urma_layer_headers urma_${name})
  urma_compile_together(urma_${name})
  if(URMA_SANITIZE OR CMAKE_INTERPROCEDURAL_OPTIMIZATION)
    # Such a tree is built once and seldom changed, so all files of a directory are compiled as one.
    set_target_properties(urma_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
  endif()
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION)
    # Otherwise only this compiler could link the static library.
    target_compile_options(urma_${name} PRIVATE -ffat-lto-objects)
  endif()
endfunction()

# urma_layer(NAME FILES...): the objects of one directory, as a part of liburma. CMake does not
# check the layers: tests/tidy compares every include with the table of allowed edges.
function(urma_layer name)
  urma_objects(${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY URMA_LAYERS urma_${name})
endfunction()

# urma_driver(NAME FILES...): a driver, which defines `const Driver NAME_driver`.
function(urma_driver name)
  urma_layer(driver_${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY URMA_DRIVERS ${name})
endfunction()

# urma_find_sdk(NAME TITLE text PACKAGES text MODULES modules... PART text): looks for the SDK of an
# optional part by pkg-config. PART names that part with its verb, for people. Sets `has_sdk`, and
# the variables of pkg_check_modules, whose prefix is NAME in capitals. The user chooses by
# URMA_WITH_NAME.
macro(urma_find_sdk name)
  cmake_parse_arguments(SDK "" "TITLE;PACKAGES;PART" "MODULES" ${ARGN})
  string(TOUPPER ${name} SDK_NAME)
  if(NOT DEFINED URMA_WITH_${SDK_NAME} AND NOT PROJECT_IS_TOP_LEVEL)
    set(URMA_WITH_${SDK_NAME} OFF)
  endif()
  set(URMA_WITH_${SDK_NAME} AUTO CACHE STRING
      "Build with ${SDK_TITLE}: ON, OFF, or AUTO, where it is found")
  set_property(CACHE URMA_WITH_${SDK_NAME} PROPERTY STRINGS AUTO ON OFF)
  set(has_sdk FALSE)
  if(URMA_WITH_${SDK_NAME} STREQUAL "AUTO" AND CMAKE_CROSSCOMPILING)
    # pkg-config may find the SDK of this machine.
  elseif(URMA_WITH_${SDK_NAME})
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
      pkg_check_modules(${SDK_NAME} QUIET ${SDK_MODULES})
      set(has_sdk ${${SDK_NAME}_FOUND})
    endif()
    if(NOT has_sdk AND NOT URMA_WITH_${SDK_NAME} STREQUAL "AUTO")
      message(FATAL_ERROR "URMA_WITH_${SDK_NAME} needs ${SDK_TITLE} or newer. "
                          "Fix: apt-get install ${SDK_PACKAGES}")
    endif()
  endif()
  if(NOT has_sdk AND URMA_WITH_${SDK_NAME} STREQUAL "AUTO")
    message(STATUS "${SDK_PART} left out: ${SDK_TITLE} or newer was not found "
                   "(apt-get install ${SDK_PACKAGES})")
  endif()
endmacro()

# urma_plugin(NAME HEADERS...): for a driver whose port is in a shared object of its own, linked
# against an SDK that liburma lacks. Sets `plugin_definitions` for its sources: URMA_PLUGIN_FILE,
# and URMA_PLUGIN_STAMP of all that the object and liburma must have in common, HEADERS included.
function(urma_plugin name)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB common RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/urma/core/*.h ${PROJECT_SOURCE_DIR}/wire/frame.h
       ${PROJECT_SOURCE_DIR}/wire/ways.h ${PROJECT_SOURCE_DIR}/base/bell.h
       ${PROJECT_SOURCE_DIR}/drivers/*.h ${ARGN})
  set(hashes "${CMAKE_CXX_COMPILER_ID} ${URMA_SANITIZE} ${URMA_PARANOID}")
  foreach(header ${common})
    file(SHA256 ${PROJECT_SOURCE_DIR}/${header} hash)
    string(APPEND hashes " ${hash}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING ${hash} 0 12 hash)
  set(plugin_definitions
      URMA_PLUGIN_STAMP="${PROJECT_VERSION}-${hash}"
      URMA_PLUGIN_FILE="liburma_${name}.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
      PARENT_SCOPE)
endfunction()

# urma_plugin_object(NAME OBJECTS objects... LIBRARIES libraries...): that shared object, which
# exports what exports.map says. The parts of the library that it needs are linked into it, from the
# static library: the shared one exports only its public interface, and a program that is linked
# statically exports nothing.
function(urma_plugin_object name)
  cmake_parse_arguments(PARSE_ARGV 1 plugin "" "" "OBJECTS;LIBRARIES")
  list(TRANSFORM plugin_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:urma_\\1>")
  add_library(urma_${name} SHARED ${plugin_OBJECTS})
  target_link_libraries(urma_${name} PRIVATE urma_static ${plugin_LIBRARIES})
  target_link_options(urma_${name} PRIVATE -Wl,--as-needed
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  set_target_properties(urma_${name} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  if(URMA_INSTALL)
    install(TARGETS urma_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
  endif()
endfunction()

# Writes the table of all declared drivers.
function(urma_driver_table output)
  get_property(drivers GLOBAL PROPERTY URMA_DRIVERS)
  set(declarations "")
  set(entries "")
  foreach(driver ${drivers})
    string(APPEND declarations "extern const Driver ${driver}_driver;\n")
    string(APPEND entries "    &${driver}_driver,\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"#include \"drivers/driver.h\"

namespace urma::drivers {

@declarations@
std::span<const Driver* const> all_drivers() {
  static constexpr const Driver* table[] = {
@entries@  };
  return table;
}

}  // namespace urma::drivers
")
endfunction()
