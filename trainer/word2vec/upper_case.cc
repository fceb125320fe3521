// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/upper_case.h"

#include <wctype.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <cwchar>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace onestep {

absl::StatusOr<UpperCase> UpperCase::Create() {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
  if (locale != locale_t{}) return UpperCase(locale);
  return absl::UnavailableError(
      absl::StrCat("want the locale C.UTF-8: ", std::strerror(errno)));
}

UpperCase::~UpperCase() {
  if (locale_ != locale_t{}) freelocale(locale_);
}

std::string UpperCase::operator()(std::string_view text) const {
  std::string upper(text);
  if (std::all_of(text.begin(), text.end(), absl::ascii_isascii)) {
    absl::AsciiStrToUpper(&upper);
    return upper;
  }
  const locale_t before = uselocale(locale_);
  std::wstring wide(text.size(), L'\0');
  const char* from = upper.c_str();
  std::mbstate_t state = {};
  const size_t letters =
      std::mbsrtowcs(wide.data(), &from, wide.size(), &state);
  if (letters != static_cast<size_t>(-1) && upper.find('\0') == upper.npos) {
    wide.resize(letters);
    for (wchar_t& letter : wide) letter = towupper_l(letter, locale_);
    upper.assign(letters * MB_LEN_MAX, '\0');
    const wchar_t* to = wide.c_str();
    upper.resize(std::wcsrtombs(upper.data(), &to, upper.size(), &state));
  }
  uselocale(before);
  return upper;
}

}  // namespace onestep
