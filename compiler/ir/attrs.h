// SPDX-License-Identifier: Apache-2.0
// The attributes that any op has: those of the families, as one type.
#ifndef ONESTEP_COMPILER_IR_ATTRS_H_
#define ONESTEP_COMPILER_IR_ATTRS_H_

#include <type_traits>
#include <variant>

#include "compiler/ir/fields.h"
#include "compiler/ir/ops/activation.h"
#include "compiler/ir/ops/elementwise.h"
#include "compiler/ir/ops/leaf.h"
#include "compiler/ir/ops/loss.h"
#include "compiler/ir/ops/matmul.h"
#include "compiler/ir/ops/placement.h"
#include "compiler/ir/ops/rows.h"
#include "compiler/ir/ops/sparse.h"
#include "compiler/ir/ops/update.h"
#include "compiler/ir/ops/window.h"

namespace onestep {

// std::variant<Ts...> with each type once.
template <typename Variant, typename... Ts>
struct VariantOfEach {
  using Type = Variant;
};
template <typename... Seen, typename T, typename... Ts>
struct VariantOfEach<std::variant<Seen...>, T, Ts...>
    : std::conditional_t<(std::is_same_v<T, Seen> || ...),
                         VariantOfEach<std::variant<Seen...>, Ts...>,
                         VariantOfEach<std::variant<Seen..., T>, Ts...>> {};

using Attrs = VariantOfEach<std::variant<NoAttrs>
#define OP(kind, text, min, max, results, traits, backends, attrs) , attrs
#include "compiler/ir/ops.def"
#undef OP
                            >::Type;

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_ATTRS_H_
