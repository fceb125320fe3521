# SPDX-License-Identifier: Apache-2.0
# The functions every folder uses.

# Options every target of this project is compiled with.
add_library(onestep_options INTERFACE)
# g++ 12 warns of std::string's own memcpy (GCC bug 105651).
target_compile_options(onestep_options INTERFACE -Wall -Wextra
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${ONESTEP_WERROR}>:-Werror>)
target_include_directories(onestep_options INTERFACE ${PROJECT_SOURCE_DIR})
if(ONESTEP_SANITIZE)
  add_compile_options(-Og -g1)
  # A library's files ten at a time take a third of the time to compile. Two
  # helpers of one name then clash: give one a better name.
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
  target_compile_options(onestep_options INTERFACE
    -fsanitize=${ONESTEP_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(onestep_options INTERFACE
    -fsanitize=${ONESTEP_SANITIZE})
endif()

# onestep_library(name SRCS a.cc ... DEPS lib ...): onestep::name.
function(onestep_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(onestep_${name} STATIC ${ARG_SRCS})
  add_library(onestep::${name} ALIAS onestep_${name})
  target_link_libraries(onestep_${name} PUBLIC onestep_options ${ARG_DEPS})
endfunction()

# onestep_test(name LABEL cpu|cuda|slow SRCS a_test.cc ... DEPS lib ...).
# Runs as one ctest entry, in the source folder so that fixtures are found.
function(onestep_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE onestep_options ${ARG_DEPS}
    GTest::gmock GTest::gtest_main)
  # With -O3 a test takes two thirds longer to compile; instrumented, with -O1
  # a third, and so with checks of every pointer, which the libraries keep.
  if(ONESTEP_SANITIZE)
    set(level -O0 -fno-sanitize=null,alignment)
  else()
    set(level -O1)
  endif()
  set_source_files_properties(${ARG_SRCS} PROPERTIES COMPILE_OPTIONS
    "${level}")
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  # The sanitizers' presets leave the slow ones out: build them by name there.
  if(ONESTEP_SANITIZE AND ARG_LABEL STREQUAL "slow")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  add_test(NAME ${name} COMMAND ${name}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Tests run side by side: a team that waits must not spin.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT 900
    ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()

# For code that runs on the emulator's fibers, which ThreadSanitizer cannot
# follow; and device code reads shared memory as now this, now that type.
add_library(onestep_on_fibers INTERFACE)
target_compile_options(onestep_on_fibers INTERFACE -fno-strict-aliasing)
if(ONESTEP_SANITIZE)
  target_compile_options(onestep_on_fibers INTERFACE -O1 -fno-sanitize=thread)
endif()

# onestep_emulated_kernels(name SRCS a.cu ...): onestep::name, the kernels as
# C++ for tests/cuda_emulator, which runs them.
function(onestep_emulated_kernels name)
  cmake_parse_arguments(ARG "" "" "SRCS" ${ARGN})
  set_source_files_properties(${ARG_SRCS} PROPERTIES LANGUAGE CXX)
  onestep_library(${name} SRCS ${ARG_SRCS} DEPS onestep::cuda_emulator)
  target_link_libraries(onestep_${name} PRIVATE onestep_on_fibers)
  set_target_properties(onestep_${name} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(onestep_${name} PRIVATE
    "SHELL:-include ${PROJECT_SOURCE_DIR}/tests/cuda_emulator/device_emulated.h")
endfunction()
