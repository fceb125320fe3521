#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gensim's word2vec: trains, scores and times files; prints one JSON object.

Runs in the environment of bench/peers/install.sh --word2vec. Refuses a gensim
whose BLAS is not OpenBLAS, for that would make it slow for no fault of its own.
"""
import argparse
import json
import os
import pathlib
import sys
import time

# Its calls are of 100 elements; OpenBLAS's own threads only get in the way.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Its kernels are those it chooses itself, whatever somebody else wanted.
os.environ.pop("OPENBLAS_CORETYPE", None)

import gensim  # noqa: E402
import numpy  # noqa: E402
import scipy.linalg  # noqa: E402,F401  (loads the BLAS that gensim calls)
import threadpoolctl  # noqa: E402
from gensim.models import word2vec  # noqa: E402
from gensim.models.keyedvectors import KeyedVectors  # noqa: E402
from gensim.test.utils import datapath  # noqa: E402

MODELS = {"skip-gram": {"sg": 1}, "cbow": {"sg": 0},
          "hs": {"sg": 1, "hs": 1, "negative": 0},
          "cbow-hs": {"sg": 0, "hs": 1, "negative": 0}}
# That come with gensim.
PAIRS = ",".join(map(datapath, ("wordsim353.tsv", "simlex999.txt")))
QUESTIONS = datapath("questions-words.txt")


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    train = verbs.add_parser("train")
    train.add_argument("corpus")
    train.add_argument("--model", default="skip-gram", choices=MODELS)
    train.add_argument("--reader", default="file", choices=("file", "iterator"))
    train.add_argument("--size", type=int, default=100)
    train.add_argument("--window", type=int, default=5)
    train.add_argument("--negative", type=int, default=5)
    train.add_argument("--sample", type=float, default=1e-3)
    train.add_argument("--min-count", type=int, default=5)
    train.add_argument("--epochs", type=int, default=5)
    train.add_argument("--workers", type=int, default=1)
    train.add_argument("--seed", type=int, default=1)
    train.add_argument("--vectors", metavar="FILE", help="save them there")
    train.add_argument("--score", action="store_true", help="as `score` does")
    score = verbs.add_parser("score")
    score.add_argument("vectors", help="word2vec binary")
    for verb in (train, score):
        verb.add_argument("--pairs", default=PAIRS, metavar="FILE,FILE")
        verb.add_argument("--questions", default=QUESTIONS, metavar="FILE")
    files = verbs.add_parser("files")
    files.add_argument("vectors", help="word2vec binary")
    files.add_argument("--folder", required=True, type=pathlib.Path)
    files.add_argument("--against", nargs="*", default=[], metavar="FILE",
                       help="others that hold the same, by their bits")
    verbs.add_parser("versions", help="of libraries; and gensim's own tests")
    return parser.parse_args()


def openblas():
    """What gensim computes with, or SystemExit where that is not OpenBLAS."""
    if word2vec.FAST_VERSION not in (0, 1):  # 2: loops of its own
        raise SystemExit("gensim: want BLAS, got FAST_VERSION "
                         f"{word2vec.FAST_VERSION}")
    blas = [library for library in threadpoolctl.threadpool_info()
            if library["user_api"] == "blas"]
    names = sorted({library["internal_api"] for library in blas})
    if names != ["openblas"]:
        raise SystemExit(f"gensim: want OpenBLAS, got {names or 'no BLAS'}")
    threads = {library["num_threads"] for library in blas}
    if threads != {1}:
        raise SystemExit(f"OpenBLAS: want 1 thread, got {sorted(threads)}")
    return ", ".join(sorted(f"{library['version']} {library['architecture']}"
                            for library in blas))


def versions():
    return {"gensim": gensim.__version__, "numpy": numpy.__version__,
            "scipy": scipy.__version__, "OpenBLAS": openblas()}


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def train(flags):
    sentences = (
        {"corpus_file": flags.corpus} if flags.reader == "file" else
        {"corpus_iterable": word2vec.LineSentence(flags.corpus)})
    model = word2vec.Word2Vec(
        **{"negative": flags.negative} | MODELS[flags.model],
        vector_size=flags.size, window=flags.window, sample=flags.sample,
        min_count=flags.min_count, workers=flags.workers, epochs=flags.epochs,
        seed=flags.seed)
    _, vocabulary_seconds = timed(lambda: model.build_vocab(**sentences))
    (_, words), seconds = timed(lambda: model.train(
        **sentences, total_words=model.corpus_total_words,
        total_examples=model.corpus_count, epochs=flags.epochs))
    if flags.vectors:
        model.wv.save_word2vec_format(flags.vectors, binary=True)
    result = {"words": words, "seconds": seconds,
              "words_per_s": words / seconds,
              "vocabulary_seconds": vocabulary_seconds,
              "vocabulary": len(model.wv)}
    return result | (score(model.wv, flags) if flags.score else {})


def score(vectors, flags):
    pairs = {}
    for path in flags.pairs.split(","):
        _, spearman, unknown = vectors.evaluate_word_pairs(path)
        pairs[pathlib.Path(path).stem] = {"spearman": float(spearman[0]),
                                          "unknown_percent": unknown}
    accuracy, sections = vectors.evaluate_word_analogies(flags.questions)
    total = sections[-1]
    asked = len(total["correct"]) + len(total["incorrect"])
    return {"pairs": pairs,
            "questions": {"accuracy": accuracy, "asked": asked}}


def load(name):
    with open(name, "rb") as file:
        file.readline()
        binary = b"\0" in file.read(1 << 16)  # no text has one
    return KeyedVectors.load_word2vec_format(name, binary=binary)


def files(flags):
    """Seconds of saving and loading, and whether all bits are still there."""
    vectors = load(flags.vectors)

    def same(other):
        return (vectors.index_to_key == other.index_to_key and
                vectors.vectors.tobytes() == other.vectors.tobytes())

    result = {}
    for kind in ("text", "binary"):
        name, binary = str(flags.folder / f"gensim.{kind}"), kind == "binary"
        _, save_seconds = timed(
            lambda: vectors.save_word2vec_format(name, binary=binary))
        again, load_seconds = timed(
            lambda: KeyedVectors.load_word2vec_format(name, binary=binary))
        result[kind] = {"save_seconds": save_seconds,
                        "load_seconds": load_seconds, "same": same(again)}
    result["against"] = {name: same(load(name)) for name in flags.against}
    return result


def main():
    flags = parse_flags()
    result = {"versions": versions()}
    if flags.verb == "train":
        result |= train(flags)
    elif flags.verb == "files":
        result |= files(flags)
    elif flags.verb == "score":
        result |= score(load(flags.vectors), flags)
    else:
        result |= {"pairs": PAIRS, "questions": QUESTIONS}
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
