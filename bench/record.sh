#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records `trainer bench` on this machine, with machine, commit and flags:
#   bench/record.sh bench/results/NAME.json [TRAINER [DIR]]
# DIR: a folder of MNIST's IDX files, for the rows; else random ones. Wants an
# idle machine: nothing here corrects for other load.
set -euo pipefail
out=${1:?want the file to write}
root=$(cd "$(dirname "$0")/.." && pwd)
trainer=${2:-$root/build/release/trainer/trainer}
cores=$("$trainer" info --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["cpu"]["default_threads"])')

data=${3:+--data $3}
runs=(
  "--threads 1 --batch 32,128,512,2048,4096 $data"
  "--threads $cores --batch 32,128,512,2048,4096 $data"
  "--threads 1 --batch 32 --kernels onednn"
  "--threads 1 --batch 8 --model 64-32-10"
  "--threads 1 --batch 1 --model 8-16-4"
)
commit=$(git -C "$root" rev-parse --short HEAD)
[[ -z $(git -C "$root" status --porcelain) ]] || commit+=" with changes"
export commit
{
  "$trainer" info --json
  for run in "${runs[@]}"; do
    echo "bench $run" >&2
    # shellcheck disable=SC2086  # the flags are words
    "$trainer" bench $run --json
  done
} | python3 -c '
import json, os, sys
decoder, text, parts = json.JSONDecoder(), sys.stdin.read().strip(), []
while text:
    part, end = decoder.raw_decode(text)
    parts.append(part)
    text = text[end:].strip()
runs = [dict(flags=flags, **run) for flags, run in zip(sys.argv[1:], parts[1:])]
print(json.dumps(dict(commit=os.environ["commit"], machine=parts[0],
                      runs=runs), indent=1))
' "${runs[@]}" > "$out"
