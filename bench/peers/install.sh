#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the peers of requirements.txt into bench/peers/.venv:
#   bench/peers/install.sh [PYTHON]
# Downloads 3 GB and takes 8 GB of disk: PyPI's PyTorch for x86 does not load
# without its CUDA libraries. Wants Python 3.11 or later with venv and headers,
# and g++, which torch.compile calls. Begins anew each time, so that what is
# installed is what is pinned.
set -euo pipefail
cd "$(dirname "$0")"
python=${1:-python3}

rm -rf .venv
"$python" -m venv .venv
.venv/bin/python -m pip install --no-deps --requirement requirements.txt
.venv/bin/python -m pip check
.venv/bin/python -c 'import jax, keras, matplotlib, numpy, threadpoolctl, torch'
echo "install.sh: installed in $PWD/.venv"
