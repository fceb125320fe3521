# SPDX-License-Identifier: Apache-2.0
# Everything comes from the system's packages; nothing is downloaded here.

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(absl REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(dnnl REQUIRED CONFIG)
message(STATUS "onestep: oneDNN ${dnnl_VERSION} found (${dnnl_DIR})")

find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
# Without it the team's matmuls are our own loops.
pkg_check_modules(XSMM libxsmm)

if(ONESTEP_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ONESTEP_BENCH)
  find_package(benchmark REQUIRED)
endif()

# CUDA is optional: without it --device gpu says that there is none.
set(ONESTEP_HAVE_CUDA OFF)
if(NOT ONESTEP_CUDA STREQUAL "OFF")
  if(ONESTEP_CUDA STREQUAL "ON")
    find_package(CUDAToolkit 13 REQUIRED)
  else()
    find_package(CUDAToolkit 13 QUIET)
  endif()
  if(CUDAToolkit_FOUND)
    # Not every installation has all of these.
    find_file(ONESTEP_CUBLASLT_H cublasLt.h
      HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
    find_file(ONESTEP_CUPTI_H cupti.h
      HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
    if(ONESTEP_CUBLASLT_H AND ONESTEP_CUPTI_H AND CUDAToolkit_NVCC_EXECUTABLE)
      set(ONESTEP_HAVE_CUDA ON)
      include(cmake/cuda.cmake)
      message(STATUS "onestep: CUDA ${CUDAToolkit_VERSION} found")
    elseif(ONESTEP_CUDA STREQUAL "ON")
      message(FATAL_ERROR "ONESTEP_CUDA=ON: want nvcc, cublasLt.h and cupti.h")
    endif()
  endif()
endif()
if(NOT ONESTEP_HAVE_CUDA)
  message(STATUS "onestep: built without CUDA")
endif()
