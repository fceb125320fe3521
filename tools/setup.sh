#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what onestep is built, tested and tried with, on Debian 12, Ubuntu
# 24.04 or later; with --tests what only the tests want too. Says and changes
# nothing when all of it is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libdnnl-dev libxsmm-dev libhwy-dev            # primitives, SIMD
  ocl-icd-opencl-dev opencl-headers             # what libdnnl-dev's CMake wants
  libabsl-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3                                       # tests/check_includes.py
  graphviz dataset-fashion-mnist                # pictures of graphs, data
)
case $* in
  "") ;;
  # A browser for the report's page; Ubuntu's is a snap.
  --tests)
    grep -q '^ID=ubuntu' /etc/os-release ||
      packages+=(chromium chromium-driver python3-selenium) ;;
  *) echo "usage: $0 [--tests]" >&2; exit 2 ;;
esac

fail() {
  echo "setup.sh: $*" >&2
  exit 1
}

command -v apt-get >/dev/null ||
  fail "needs apt; elsewhere install by hand: ${packages[*]}"

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
  "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=(env DEBIAN_FRONTEND=noninteractive)
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "needs root or sudo to install: ${missing[*]}"
  as_root=(sudo "${as_root[@]}")
fi

echo "setup.sh: installing ${missing[*]}" >&2
# A new machine may still be updating itself: wait for its lock.
apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
"${as_root[@]}" "${apt[@]}" update >&2 || true  # a foreign source may be down
"${as_root[@]}" "${apt[@]}" install -y --no-install-recommends \
  "${missing[@]}" >&2
