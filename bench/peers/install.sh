#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the peers of requirements.txt into bench/peers/.venv, or gensim, of
# requirements-word2vec.txt, into .venv-word2vec:
#   bench/peers/install.sh [--word2vec] [PYTHON]
# The former downloads 3 GB and takes 8 GB of disk: PyPI's PyTorch for x86 does
# not load without its CUDA libraries; gensim takes 0.3 GB. Wants Python 3.11 or
# later with venv and headers, and g++, which torch.compile calls. Begins anew
# each time, so that what is installed is what is pinned.
set -euo pipefail
cd "$(dirname "$0")"
suffix="" modules="jax, keras, matplotlib, numpy, threadpoolctl, torch"
if [[ ${1:-} == --word2vec ]]; then
  shift
  suffix=-word2vec modules="gensim.models, threadpoolctl"
fi
venv=.venv$suffix
python=${1:-python3}

rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --no-deps \
  --requirement "requirements$suffix.txt"
"$venv/bin/python" -m pip check
"$venv/bin/python" -c "import $modules"
echo "install.sh: installed in $PWD/$venv"
