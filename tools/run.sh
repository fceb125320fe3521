#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs the trainer:
#   ./tools/run.sh                trains on Fashion-MNIST, fused, on the CPU
#   ./tools/run.sh --fuse off     passes its arguments on
#   ./tools/run.sh info           so too a subcommand, then with no defaults
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release

"$root/tools/setup.sh"
# No preset: cpu and cuda decide about CUDA, here it is built where found.
[[ -f $build/build.ninja ]] || cmake -S "$root" -B "$build" -G Ninja >&2
cmake --build "$build" --parallel "$(nproc)" --target trainer >&2

defaults=()
if [[ ${1:--} == -* ]]; then
  [[ " $*" == *" --fuse"* ]] || defaults+=(--fuse on)
  [[ " $*" == *" --device"* ]] || defaults+=(--device cpu)
fi
exec "$build/trainer/trainer" "${defaults[@]}" "$@"
