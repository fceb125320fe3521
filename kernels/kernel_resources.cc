// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_resources.h"

#include <string>
#include <string_view>

namespace onestep {
namespace {

std::string_view TemplateOf(std::string_view name) {
  return name.substr(0, name.find('<'));
}

}  // namespace

const KernelResources* FindKernelResources(const char* name) {
  std::string wanted;
  for (const char* c = name; *c != '\0'; ++c) {
    if (*c != ' ') wanted += *c;
  }
  const KernelResources *exact = nullptr, *instance = nullptr;
  bool several = false;
  for (const KernelResources& row : AllKernelResources()) {
    if (row.name == wanted) exact = &row;
    if (TemplateOf(row.name) != TemplateOf(wanted)) continue;
    several |=
        instance != nullptr && std::string_view(instance->name) != row.name;
    instance = &row;
  }
  if (exact != nullptr) return exact;
  return several ? nullptr : instance;
}

}  // namespace onestep
