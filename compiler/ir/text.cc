// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// ---- values of attributes ---------------------------------------------------

std::string FieldText(bool v) { return v ? "true" : "false"; }
std::string FieldText(int64_t v) { return absl::StrCat(v); }
std::string FieldText(DType v) { return DTypeName(v); }
template <typename T>
requires std::is_enum_v<T> std::string FieldText(T v) { return ToString(v); }
// The shortest decimal that reads back as the same float.
std::string FieldText(float v) {
  for (int digits = 6; digits < 9; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, v);
    float back = 0;
    if (absl::SimpleAtof(text, &back) && back == v) return text;
  }
  return absl::StrFormat("%.9g", v);
}

bool ParseField(absl::string_view text, bool& v) {
  v = text == "true";
  return v || text == "false";
}
bool ParseField(absl::string_view text, int64_t& v) {
  return absl::SimpleAtoi(text, &v);
}
bool ParseField(absl::string_view text, float& v) {
  return absl::SimpleAtof(text, &v);
}
bool ParseField(absl::string_view text, DType& v) {
  for (DType d : {DType::kF32, DType::kU8, DType::kI32}) {
    v = d;
    if (text == DTypeName(d)) return true;
  }
  return false;
}
template <typename T>
requires std::is_enum_v<T>
bool ParseField(absl::string_view text, T& v) {
  for (int i = 0; i < 8; ++i) {
    v = static_cast<T>(i);
    if (text == ToString(v)) return true;
    if (absl::string_view(ToString(v)) == "?") break;
  }
  return false;
}

absl::StatusOr<TensorType> ParseType(absl::string_view text) {
  constexpr int64_t kMaxElements = int64_t{1} << 40;
  int64_t elements = 1;
  TensorType type;
  const absl::string_view whole = text;
  const size_t times = text.find('x');
  if (times != absl::string_view::npos) {
    if (!absl::SimpleAtoi(text.substr(0, times), &type.models) ||
        type.models < 1 || type.models > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("want models as in 16xf32[32,10], got ", whole));
    }
    elements = type.models;
    text.remove_prefix(times + 1);
  }
  const size_t open = text.find('[');
  if (open == absl::string_view::npos || text.back() != ']' ||
      !ParseField(text.substr(0, open), type.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a type like f32[32,10], got ", whole));
  }
  const absl::string_view dims = text.substr(open + 1, text.size() - open - 2);
  for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
    int64_t d = 0;
    if (!absl::SimpleAtoi(dim, &d)) {
      return absl::InvalidArgumentError(
          absl::StrCat("want a size, got ", dim, " in ", whole));
    }
    type.dims.push_back(d);
    elements = d > 0 && elements <= kMaxElements / d ? elements * d : -1;
    if (elements < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "want sizes from 1 and at most 2^40 elements, got ", whole));
    }
  }
  return type;
}

// `#` begins a comment, except within %9#1.
absl::string_view StripComment(absl::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ')) {
      return line.substr(0, i);
    }
  }
  return line;
}

// ---- parser -----------------------------------------------------------------

// One line at a time; `rest_` is what is left of it.
class Parser {
 public:
  absl::StatusOr<Graph> Run(absl::string_view text) {
    int number = 0;
    bool open = false, closed = false;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(StripComment(line));
      if (line.empty()) continue;
      absl::Status status;
      if (!open) {
        open = line == "graph {";
        if (!open) status = Want("`graph {`", line);
      } else if (closed) {
        status = Want("nothing after `}`", line);
      } else if (line == "}") {
        closed = true;
      } else {
        status = Statement(line);
      }
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, ": ", status.message()));
      }
    }
    if (!closed) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": want `}`, got the end"));
    }
    if (absl::Status status = graph_.Verify(); !status.ok()) {
      return absl::InvalidArgumentError(status.message());
    }
    return std::move(graph_);
  }

 private:
  static absl::Status Want(absl::string_view what, absl::string_view got) {
    return absl::InvalidArgumentError(
        absl::StrCat("want ", what, ", got ", got.empty() ? "nothing" : got));
  }

  absl::Status Statement(absl::string_view line) {
    rest_ = line;
    if (Eat("update ")) return ParseOutput(Output::kUpdate);
    if (Eat("result ")) return ParseOutput(Output::kResult);
    ASSIGN_OR_RETURN(const std::string name, Name());
    if (Eat(":")) Word();  // the number of results is known from the op
    if (!Eat("=")) return Want("=", rest_);
    const std::string op(Word());
    const std::optional<NamedOp> named = FindOp(op);
    if (!named) return Want("an op", op);
    if (GetOpDef(named->kind).Has(kLeaf)) return ParseLeaf(named->kind, name);
    return ParseNode(*named, name);
  }

  absl::Status ParseOutput(Output::Kind kind) {
    const std::string name(Word());
    if (!Eat("=")) return Want("=", rest_);
    ASSIGN_OR_RETURN(const Value value, ParseValue());
    if (kind == Output::kResult) {
      graph_.AddResult(name, value);
    } else {
      Node* const param = graph_.FindLeaf(name);
      if (param == nullptr || param->kind != OpKind::kParam) {
        return Want("a param", name);
      }
      graph_.AddUpdate(param->result(), value);
    }
    return End();
  }

  absl::Status ParseLeaf(OpKind kind, const std::string& name) {
    ASSIGN_OR_RETURN(TensorType type, ParseType(Word()));
    if (!values_
             .emplace(name, kind == OpKind::kInput
                                ? graph_.AddInput(name, std::move(type)).node
                                : graph_.AddParam(name, std::move(type)).node)
             .second) {
      return Want("a new name", "%" + name);
    }
    return End();
  }

  absl::Status ParseNode(const NamedOp& named, const std::string& name) {
    const OpKind kind = named.kind;
    const absl::string_view line = rest_;
    std::vector<Value> operands;
    if (!Eat("(")) return Want("(", rest_);
    while (!Eat(")")) {
      if (!operands.empty() && !Eat(",")) return Want(", or )", rest_);
      ASSIGN_OR_RETURN(const Value value, ParseValue());
      operands.push_back(value);
    }
    Attrs attrs = named.attrs;
    if (Eat("{")) RETURN_IF_ERROR(ParseAttrs(kind, attrs));
    std::vector<TensorType> types;
    if (!Eat(":")) return Want(":", rest_);
    do {
      ASSIGN_OR_RETURN(TensorType type, ParseType(Word()));
      types.push_back(std::move(type));
    } while (Eat(","));
    graph_.set_phase(Phase::kNone);
    if (Eat("@")) {
      Phase phase = Phase::kNone;
      const absl::string_view word = Word();
      if (!ParseField(word, phase)) return Want("a phase", word);
      graph_.set_phase(phase);
    }
    RETURN_IF_ERROR(End());
    Node* node = nullptr;
    if (kind == OpKind::kConstant) {
      if (!operands.empty() || types[0].dtype != DType::kF32) {
        return Want("constant() : f32[...]", line);
      }
      node = graph_.AddConstant(std::get<ConstantAttrs>(attrs).value, types[0])
                 .node;
    } else {
      ASSIGN_OR_RETURN(node, graph_.AddNode(kind, operands, attrs));
    }
    if (node->types != types) {
      return Want(absl::StrJoin(node->types, ", ",
                                [](std::string* out, const TensorType& t) {
                                  out->append(t.ToString());
                                }),
                  "another type");
    }
    if (!values_.emplace(name, node).second) {
      return Want("a new name", "%" + name);
    }
    return absl::OkStatus();
  }

  absl::Status ParseAttrs(OpKind kind, Attrs& attrs) {
    while (!Eat("}")) {
      const std::string field(Word());
      if (!Eat("=")) return Want("=", rest_);
      const std::string text(Word());
      bool known = false, good = false;
      std::visit(
          [&](auto& a) {
            a.Visit([&](absl::string_view name, auto& v) {
              if (name != field) return;
              known = true;
              good = ParseField(text, v);
            });
          },
          attrs);
      if (!known) {
        return Want(absl::StrCat("a field of ", GetOpDef(kind).name), field);
      }
      if (!good) return Want(absl::StrCat("a value of ", field), text);
      Eat(",");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Name() {
    if (!Eat("%")) return Want("%name", rest_);
    const std::string name(Word());
    if (name.empty()) return Want("%name", rest_);
    return name;
  }

  absl::StatusOr<Value> ParseValue() {
    ASSIGN_OR_RETURN(const std::string name, Name());
    const auto it = values_.find(name);
    if (it == values_.end()) return Want("a value defined above", "%" + name);
    int index = 0;
    if (Eat("#") && !absl::SimpleAtoi(Word(), &index)) {
      return Want("a result number", rest_);
    }
    if (index < 0 || index >= std::ssize(it->second->types)) {
      return Want(absl::StrCat("one of ", it->second->types.size(), " results"),
                  absl::StrCat("%", name, "#", index));
    }
    return it->second->result(index);
  }

  absl::Status End() {
    return rest_.empty() ? absl::OkStatus()
                         : Want("the end of the line", rest_);
  }

  bool Eat(absl::string_view token) {
    if (!absl::ConsumePrefix(&rest_, token)) return false;
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return true;
  }

  // A name, number or type: up to a delimiter that is not within [].
  absl::string_view Word() {
    size_t end = 0;
    bool bracket = false;
    while (end < rest_.size()) {
      const char c = rest_[end];
      if (c == '[') bracket = true;
      if (!bracket &&
          absl::StrContains(" ,(){}=:#@%", absl::string_view(&c, 1)))
        break;
      if (c == ']') bracket = false;
      ++end;
    }
    const absl::string_view word = rest_.substr(0, end);
    rest_ = absl::StripLeadingAsciiWhitespace(rest_.substr(end));
    return word;
  }

  absl::string_view rest_;
  Graph graph_;
  std::map<std::string, Node*, std::less<>> values_;
};

}  // namespace

std::string PrintAttrs(OpKind kind, const Attrs& attrs) {
  // Both visits give the fields in the same order.
  std::vector<std::string> defaults, fields;
  Attrs base = AttrsOfName(kind, attrs), copy = attrs;
  std::visit(
      [&](auto& a) {
        a.Visit([&](const std::string&, auto& v) {
          defaults.push_back(FieldText(v));
        });
      },
      base);
  size_t i = 0;
  std::visit(
      [&](auto& a) {
        a.Visit([&](const std::string& name, auto& v) {
          std::string text = FieldText(v);
          if (text != defaults[i++]) {
            fields.push_back(absl::StrCat(name, "=", text));
          }
        });
      },
      copy);
  return fields.empty() ? ""
                        : absl::StrCat("{", absl::StrJoin(fields, ", "), "}");
}

std::string PrintGraph(const Graph& graph, const PrintOptions& options) {
  std::map<const Node*, std::string> names;
  const auto name_of = [&names](Value v) {
    return v.node->types.size() == 1
               ? names[v.node]
               : absl::StrCat(names[v.node], "#", v.index);
  };
  std::string text = "graph {\n";
  int number = 0;
  for (const auto& node : graph.nodes()) {
    const OpDef& def = node->def();
    std::string& name = names[node.get()];
    if (def.Has(kLeaf)) {
      name = "%" + node->name();
      absl::StrAppend(&text, "  ", name, " = ", def.name, " ",
                      node->types[0].ToString(), "\n");
      continue;
    }
    name = absl::StrCat("%", number++);
    absl::StrAppend(&text, "  ", name);
    if (node->types.size() > 1) {
      absl::StrAppend(&text, ":", node->types.size());
    }
    absl::StrAppend(&text, " = ", node->op(), "(",
                    absl::StrJoin(node->operands, ", ",
                                  [&](std::string* out, const Value& v) {
                                    out->append(name_of(v));
                                  }),
                    ")");
    const std::string attrs = PrintAttrs(node->kind, node->attrs);
    if (!attrs.empty()) absl::StrAppend(&text, " ", attrs);
    absl::StrAppend(&text, " : ",
                    absl::StrJoin(node->types, ", ",
                                  [](std::string* out, const TensorType& t) {
                                    out->append(t.ToString());
                                  }));
    if (node->phase != Phase::kNone) {
      absl::StrAppend(&text, " @", ToString(node->phase));
    }
    if (options.fused_from && !node->fused_from.empty()) {
      absl::StrAppend(&text, "  # ", absl::StrJoin(node->fused_from, " + "));
    }
    text += '\n';
  }
  for (const Output& out : graph.outputs()) {
    absl::StrAppend(&text, "  ",
                    out.kind == Output::kUpdate ? "update " : "result ",
                    out.name, " = ", name_of(out.value), "\n");
  }
  text += "}\n";
  return text;
}

absl::StatusOr<Graph> ParseGraph(absl::string_view text) {
  return Parser().Run(text);
}

}  // namespace onestep
