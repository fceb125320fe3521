#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures onestep on a GPU, from a bundle of tools/gpu_bundle.sh:
#   ./gpu_check.sh [--python PYTHON] [--seconds N] [RESULTS]
# Device tests, the probe, tables over ways to run the step, the peers, and where
# the time goes, each with a limit of its own and all of them within N seconds
# [460]. Every number is in RESULTS [./results], a summary is printed last. A
# part that fails is reported and does not stop the others; the exit status is 1
# when a device test failed or none could be run.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
python=python3
seconds=460
results=$PWD/results
while (($#)); do
  case $1 in
    --python) python=${2:?--python: want a value}; shift 2 ;;
    --seconds) seconds=${2:?--seconds: want a value}; shift 2 ;;
    -*) echo "gpu_check.sh: unknown flag $1" >&2; exit 2 ;;
    *) results=$1; shift ;;
  esac
done
tar xzf onestep.tar.gz || exit 1
mkdir -p "$results" || exit 1
results=$(cd "$results" && pwd)
parts=$results/parts.tsv
: >"$parts"
rm -f "$results"/{bench,peer,profile}*.json* "$results"/{probe,sweep}.json
batches=32,128,512,4096
reserve=0  # seconds that are kept for later parts
data=()
[[ -d data ]] && data=(--data "$PWD/data")

# Where cublasLt is, unless the loader knows: CUDA's folder or PyTorch's.
cuda_libraries=$("$python" - <<'PYTHON' 2>/dev/null
import glob, os, sys
places = ["/usr/local/cuda/lib64", "/usr/local/cuda-13*/lib64"]
places += [p + "/nvidia/*/lib" for p in sys.path if p]
found = [os.path.dirname(f) for p in places
         for f in glob.glob(p + "/libcublasLt.so.13")]
print(found[0] if found else "")
PYTHON
)

# ours COMMAND...: with the bundle's libraries, which Python must not see, and
# where the driver is, if only the environment knows.
ours() {
  local libraries=$PWD/lib${cuda_libraries:+:$cuda_libraries}
  LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    ONESTEP_REQUIRE_CUDA=1 OMP_WAIT_POLICY=passive "$@"
}

# part NAME LIMIT FILE COMMAND...: stdout to FILE, stderr to NAME.log.
part() {
  local name=$1 limit=$2 file=$3 begin=$SECONDS status left
  shift 3
  left=$((seconds - reserve - SECONDS))
  if ((left < 5)); then
    printf '%s\t%s\t0\tno time was left\n' "$name" skipped >>"$parts"
    return 1
  fi
  ((limit < left)) || limit=$left
  "${runner[@]}" timeout -k 5 "$limit" "$@" \
    >"$results/$file" 2>"$results/$name.log"
  status=$?
  local why=""
  case $status in
    0) ;;
    124|137) why="ran past $limit s" ;;
    *) why=$(cat "$results/$file" "$results/$name.log" |
         grep -E 'rror|FAILED  |^trainer:' | tail -1 | cut -c1-160) ;;
  esac
  printf '%s\t%s\t%s\t%s\n' "$name" "$status" $((SECONDS - begin)) "$why" \
    >>"$parts"
  echo "gpu_check.sh: $name: status $status, $((SECONDS - begin)) s $why" >&2
  return $status
}

device_tests() {
  local failed=0 run=0 test
  for test in tests/*; do
    [[ -x $test ]] || continue
    run=1
    part "test-${test#tests/}" 120 "test-${test#tests/}.txt" "./$test" &&
      continue
    failed=1
    grep -A 8 ': Failure' "$results/test-${test#tests/}.txt" | head -40 >&2
  done
  ((run)) || printf 'device tests\tskipped\t0\tnone in the bundle\n' >>"$parts"
  ((run && !failed))
}

# bench NAME LIMIT FLAGS...: every tier and way to launch it; the program checks
# the losses against the unfused step first.
bench() {
  local name=$1 limit=$2
  shift 2
  part "bench-$name" "$limit" "bench-$name.json" bin/trainer bench \
    --device gpu --samples 15 --processes 1 --json "${data[@]}" "$@"
}

tables() {
  local batch math tier
  for batch in ${batches//,/ }; do
    bench "fp32-$batch" 30 --batch "$batch" && continue
    # A kernel that traps takes all ways of the process along.
    for tier in fused persistent; do
      bench "fp32-$batch-$tier" 15 --batch "$batch" --tier "$tier"
    done
  done
  bench replay-per-step 20 --batch 32 --steps-per-launch 1
  for math in tf32 bf16; do bench "$math" 25 --math "$math" --batch 32,4096; done
  part train 30 train.txt bin/trainer --device gpu --epochs 5 "${data[@]}"
  part graph 20 graph.txt bin/trainer graph --device gpu --tier library \
    --dispatch graph --dump-cuda-graph "$results/step.dot"
}

peers() {
  local mode
  for mode in jax:jit jax:scan torch:eager torch:graph torch:graph-k \
    torch:compile; do
    part "peer-${mode/:/-}" 75 "peer-${mode/:/-}.jsonl" "$python" \
      "peers/gpu_${mode%:*}.py" --mode "${mode#*:}" --batches "$batches" \
      --math fp32 "${data[@]}"
  done
}

# Per op and call of CUDA, by the tiers whose ops are nodes and by the best one;
# and over the batch, for the CPU and the GPU.
overhead() {
  local tier
  for tier in library fused; do
    part "profile-$tier" 20 "profile-$tier.json" bin/trainer profile \
      --device gpu --dispatch graph --tier "$tier" --json "${data[@]}"
  done
  part profile 20 profile.json bin/trainer profile --device gpu --json \
    "${data[@]}"
  part sweep 40 sweep.json bin/trainer sweep --devices cpu,gpu \
    --batches "$batches" --json "${data[@]}"
}

runner=(env)
{ cat COMMIT; uname -a; nvidia-smi; "$python" --version; } \
  >"$results/machine.txt" 2>&1
runner=(ours)
part info 30 info.json bin/trainer info --json
reserve=$((seconds * 3 / 5))
device_tests
tests_status=$?
part probe 60 probe.json bin/trainer probe --json
reserve=$((seconds * 2 / 5))
tables
reserve=$((seconds / 6))
runner=(env XLA_PYTHON_CLIENT_PREALLOCATE=false)
peers
reserve=0
runner=(ours)
overhead
"$python" peers/gpu_summary.py "$results" | tee "$results/summary.txt"
exit "$tests_status"
