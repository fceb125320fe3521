#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what tools/gpu_check.sh needs on a machine with a GPU and no more than
# CUDA and Python there: the built trainer, the device tests, their libraries,
# the peers, and data.
#   tools/gpu_bundle.sh [--build DIR] [--data DIR] [--test NAME]... [OUT]
# --build: build/release; --data: MNIST's IDX files, $ONESTEP_DATA, or none;
# --test: instead of the tests that are labelled cuda; OUT: build/gpu_bundle,
# a folder that is made anew. Its name is printed, and its size.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
data=${ONESTEP_DATA:-}
out=$root/build/gpu_bundle
tests=()
limit_mib=64

fail() {
  echo "gpu_bundle.sh: $*" >&2
  exit 1
}

while (($#)); do
  case $1 in
    --build|--data|--test)
      (($# > 1)) || fail "$1: want a value"
      case $1 in
        --build) build=$2 ;;
        --data) data=$2 ;;
        --test) tests+=("$2") ;;
      esac
      shift 2 ;;
    -*) fail "unknown flag $1" ;;
    *) out=$1; shift ;;
  esac
done

[[ -x $build/trainer/trainer ]] || fail "$build: build the trainer there first"
if ((${#tests[@]} == 0)); then
  mapfile -t tests < <(ctest --test-dir "$build" -N -L '^cuda$' |
    sed -n 's/^ *Test *#[0-9]*: *//p')
fi
((${#tests[@]})) || echo "gpu_bundle.sh: no test is labelled cuda" >&2

[[ ! -e $out || -e $out/gpu_check.sh ]] || fail "$out: is no bundle"
rm -rf "$out"
mkdir -p "$out"/{bin,tests,lib,peers}
binaries=("$build/trainer/trainer")
cp "$build/trainer/trainer" "$out/bin/"
for test in "${tests[@]}"; do
  [[ -x $build/tests/$test ]] || fail "$build/tests/$test: not built"
  cp "$build/tests/$test" "$out/tests/"
  binaries+=("$build/tests/$test")
done

# Of the C library only what is no part of it comes along.
glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl)\.so.*)$'
theirs='^lib(cuda|cublas|cublasLt|nvidia-.*)\.so.*$'
ldd "${binaries[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u |
  while read -r name path; do
    [[ $name =~ $glibc || $name =~ $theirs ]] || cp -L "$path" "$out/lib/$name"
  done

for peer in gpu_common gpu_jax gpu_summary gpu_torch jax_step workload; do
  cp "$root/bench/peers/$peer.py" "$out/peers/"
done
cp "$root/tools/gpu_check.sh" "$out/"
if [[ -n $data ]]; then
  mkdir "$out/data"
  cp -L "$data"/*-ubyte* "$out/data/"
fi
# Libraries shrink to a third.
tar czf "$out/onestep.tar.gz" -C "$out" bin tests lib
rm -r "$out"/{bin,tests,lib}
git -C "$root" describe --always --dirty >"$out/COMMIT" 2>/dev/null ||
  echo unknown >"$out/COMMIT"

size_mib=$(du -sm "$out" | cut -f1)
echo "$out: ${size_mib} MiB, ${#tests[@]} device tests" \
  "$([[ -n $data ]] && echo "and data" || echo "and no data")"
((size_mib < limit_mib)) || fail "$out: want less than $limit_mib MiB"
