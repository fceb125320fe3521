// SPDX-License-Identifier: Apache-2.0
// Status macros that Abseil 20220623 (Debian 12) does not have.
#ifndef ONESTEP_RUNTIME_BASE_STATUS_H_
#define ONESTEP_RUNTIME_BASE_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define ONESTEP_CONCAT_(a, b) a##b
#define ONESTEP_CONCAT(a, b) ONESTEP_CONCAT_(a, b)

// Returns from the function when `expr` (an absl::Status) is not ok.
#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// Assigns the value of `expr` (an absl::StatusOr) to `lhs` or returns.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_(ONESTEP_CONCAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                      \
  if (!tmp.ok()) return tmp.status();     \
  lhs = std::move(tmp).value()

// Aborts with file and line when an internal invariant does not hold. Errors
// that a user can cause are returned as absl::Status instead.
#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                             \
      std::abort();                                                         \
    }                                                                       \
  } while (false)

#endif  // ONESTEP_RUNTIME_BASE_STATUS_H_
