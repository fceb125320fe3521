# SPDX-License-Identifier: Apache-2.0
# Kernels are compiled by nvcc, called as it is: CMake's CUDA language would
# want a GPU compiler of every build and hides what ptxas says.

set(ONESTEP_CUDA_ARCHITECTURES 90 CACHE STRING
  "GPUs to make code for, e.g. 80;90; the last one's PTX serves newer ones")

# onestep_cuda_kernels(name SRCS a.cu ... DEPS lib ...): onestep::name, with its
# kernels' table of resources (kernels/kernel_resources.h). The PTX, for the
# tests, is in the folder that the target's property ONESTEP_PTX_DIR names.
function(onestep_cuda_kernels name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)

  # 20050: a kernel in a header is inline to g++, which nvcc has no use for.
  set(flags -std=c++20 -O3 -lineinfo -diag-suppress=20050
    -ccbin ${CMAKE_CXX_COMPILER} -I${PROJECT_SOURCE_DIR}
    -Xcompiler=-Wall,-Wextra,-fPIC)
  if(ONESTEP_WERROR)
    list(APPEND flags -Werror=all-warnings)
  endif()
  foreach(arch IN LISTS ONESTEP_CUDA_ARCHITECTURES)
    list(APPEND flags -gencode=arch=compute_${arch},code=sm_${arch})
  endforeach()
  list(GET ONESTEP_CUDA_ARCHITECTURES -1 arch)
  list(APPEND flags -gencode=arch=compute_${arch},code=compute_${arch})

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(script ${PROJECT_SOURCE_DIR}/cmake/compile_cuda.py)
  foreach(source IN LISTS ARG_SRCS)
    cmake_path(GET source STEM stem)
    set(object ${folder}/${stem}.o)
    add_custom_command(
      OUTPUT ${object} ${folder}/${stem}.ptxas
      COMMAND Python3::Interpreter ${script} ${folder} ${stem}
              ${CUDAToolkit_NVCC_EXECUTABLE} ${flags}
              ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      DEPENDS ${source} ${script}
      DEPFILE ${folder}/${stem}.d
      COMMENT "Building CUDA object ${name}/${stem}.o"
      VERBATIM)
    list(APPEND objects ${object})
    list(APPEND reports ${folder}/${stem}.ptxas)
  endforeach()

  set(table ${folder}/kernel_resources.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/kernel_resources.py)
  add_custom_command(
    OUTPUT ${table}
    COMMAND Python3::Interpreter ${script} ${table} ${reports}
    DEPENDS ${script} ${reports}
    COMMENT "Generating the resources of ${name}"
    VERBATIM)

  onestep_library(${name} SRCS ${table} ${objects} DEPS CUDA::cudart_static ${ARG_DEPS})
  set_source_files_properties(${objects} PROPERTIES
    EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(onestep_${name} PROPERTIES ONESTEP_PTX_DIR ${folder})
endfunction()
