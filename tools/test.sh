#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every test, then the fast ones
# once more under AddressSanitizer and UndefinedBehaviorSanitizer. CI runs
# this and nothing else. With --tsan they run under ThreadSanitizer as well.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizers=(asan)
case $* in
  "") ;;
  --tsan) sanitizers+=(tsan) ;;
  *) echo "usage: $0 [--tsan]" >&2; exit 2 ;;
esac
trap 'echo "test.sh: failed: $BASH_COMMAND" >&2' ERR

./tools/setup.sh --tests
# Where Chromium is a snap, the report's page is not tested.
grep -q '^ID=ubuntu' /etc/os-release || export ONESTEP_REQUIRE_CHROMIUM=1
export CMAKE_BUILD_PARALLEL_LEVEL CTEST_PARALLEL_LEVEL
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)
CTEST_PARALLEL_LEVEL=$CMAKE_BUILD_PARALLEL_LEVEL

# The folder of run.sh, now with warnings as errors.
cmake -S . -B build/release -G Ninja -DONESTEP_WERROR=ON
cmake --build build/release
ctest --test-dir build/release --output-on-failure --no-tests=error
for preset in "${sanitizers[@]}"; do
  cmake --preset "$preset"
  cmake --build --preset "$preset"
  ctest --preset "$preset" --no-tests=error
done
echo "test.sh: all tests passed (release ${sanitizers[*]}) in $SECONDS s"
