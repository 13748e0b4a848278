# SPDX-License-Identifier: Apache-2.0
# `cmake --install` installs the library with these rules, and other projects find it by them. Each
# tool's directory installs its own tool. Nothing here names the prefix, so the installed tree may
# be moved afterwards.

include(CMakePackageConfigHelpers)

# The headers that applications include, directly or indirectly: tests/install compares the list
# with the includes.
file(GLOB included RELATIVE ${PROJECT_SOURCE_DIR}
     ${PROJECT_SOURCE_DIR}/urma/*.hpp ${PROJECT_SOURCE_DIR}/urma/asio/*.h)
set(public_headers
  ${included}
  urma/core/atomic.h
  urma/core/atomic_works.h
  urma/core/balance.h
  urma/core/budget.h
  urma/core/configuration.h
  urma/core/congestion_choice.h
  urma/core/cxx20.h
  urma/core/descriptor.h
  urma/core/driver_info.h
  urma/core/endpoint.h
  urma/core/error_code.h
  urma/core/event.h
  urma/core/export.h
  urma/core/handle.h
  urma/core/ids.h
  urma/core/log.h
  urma/core/observed.h
  urma/core/options.h
  urma/core/order.h
  urma/core/path.h
  urma/core/poll_and_arm.h
  urma/core/profile.h
  urma/core/result.h
  urma/core/retransmission.h
  urma/core/rights.h
  urma/core/segment_options.h
  urma/core/sequence.h
  urma/core/setting.h
  urma/core/statistics.h
  urma/core/status.h
  urma/core/time.h
  urma/core/work.h)
foreach(header ${public_headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

install(TARGETS urma_shared urma_static EXPORT urma
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# find_package(urma CONFIG)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/urma)
install(EXPORT urma NAMESPACE urma:: FILE urmaTargets.cmake DESTINATION ${package})
configure_file(cmake/urmaConfig.cmake.in urmaConfig.cmake COPYONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/urmaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/urmaConfig.cmake ${PROJECT_BINARY_DIR}/urmaConfigVersion.cmake
        DESTINATION ${package})

# pkg-config urma. Directories that were given as absolute paths, as distributions do, are kept.
# Programs that are linked with it look for the library where urma.pc found it, at any prefix; in a
# distribution's standard directories the loader looks anyway.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(pc_rpath " -Wl,-rpath,\${libdir}")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(pc_rpath "")
endif()
configure_file(cmake/urma.pc.in urma.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/urma.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Installed tools find the library relative to their own location.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(CMAKE_INSTALL_RPATH ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH CMAKE_INSTALL_RPATH ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  string(PREPEND CMAKE_INSTALL_RPATH "$ORIGIN/")
endif()

# Installs the documents, the sources of the examples, the man pages, and the Wireshark dissector.
file(GLOB documents RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*.svg
     ${PROJECT_SOURCE_DIR}/docs/*.json
     ${PROJECT_SOURCE_DIR}/apps/hello/*.cc ${PROJECT_SOURCE_DIR}/apps/hello/README.md
     ${PROJECT_SOURCE_DIR}/examples/*.cc ${PROJECT_SOURCE_DIR}/examples/README.md)
list(PREPEND documents README.md CHANGELOG.md LICENSE)
configure_file(cmake/install_documents.cmake.in install_documents.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/install_documents.cmake)
install(FILES cmake/examples.cmake.in DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        RENAME CMakeLists.txt)
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL FILES_MATCHING
        PATTERN *.1)
install(FILES tools/wireshark/README.md tools/wireshark/uboe.lua
        DESTINATION ${CMAKE_INSTALL_DATADIR}/urma/wireshark)
install(FILES tools/qlog/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/urma/qlog)
install(FILES tools/bpftrace/README.md tools/bpftrace/latency.bt
        DESTINATION ${CMAKE_INSTALL_DATADIR}/urma/bpftrace)

# Removes what the last installation from this tree has installed.
configure_file(cmake/uninstall.cmake.in uninstall.cmake @ONLY)
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -P ${PROJECT_BINARY_DIR}/uninstall.cmake)
endif()
