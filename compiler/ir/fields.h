// SPDX-License-Identifier: Apache-2.0
// The fields of an op's attributes. Printing, parsing and comparing are written
// once, over Visit.
#ifndef ONESTEP_COMPILER_IR_FIELDS_H_
#define ONESTEP_COMPILER_IR_FIELDS_H_

#include <string>
#include <string_view>

namespace onestep {

// Takes the first name off a list "alpha, beta".
inline std::string TakeFieldName(std::string_view& names) {
  const size_t comma = names.find(',');
  const std::string name(names.substr(0, comma));
  names.remove_prefix(comma == names.npos ? names.size() : comma + 2);
  return name;
}

template <typename V, typename... Fields>
void VisitFields(V&& v, std::string_view names, Fields&... fields) {
  (v(TakeFieldName(names), fields), ...);
}

// Inside struct `Type`: Visit(v), which calls v("name", field) for each of the
// fields named, in this order, and the comparison of all fields.
#define ONESTEP_FIELDS(Type, ...)              \
  template <typename V>                        \
  void Visit(V&& v) {                          \
    VisitFields(v, #__VA_ARGS__, __VA_ARGS__); \
  }                                            \
  friend bool operator==(const Type&, const Type&) = default

// Of an op that has no attributes.
struct NoAttrs {
  template <typename V>
  void Visit(V&&) {}
  friend bool operator==(const NoAttrs&, const NoAttrs&) = default;
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_FIELDS_H_
