# SPDX-License-Identifier: Apache-2.0
"""What bench/word2vec_bench and bench/word2vec_quality run, each in a process.

A run trains on a corpus and tells the words a second of training alone: words
of the text, those too rare for the vocabulary too.
"""
import array
import dataclasses
import lzma
import operator
import pathlib
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "peers"))
import approaches  # noqa: E402
from approaches import Failed, run_json, run_text  # noqa: E402

VENV = approaches.PEERS / ".venv-word2vec"

# Of both; those of word2vec itself.
SETTINGS = ("--size", 100, "--window", 5, "--sample", 1e-3, "--min-count", 5)
NEGATIVE = ("--negative", 5)
MODELS = {"skip-gram": NEGATIVE, "cbow": ("--cbow", 1, *NEGATIVE),
          "hs": ("--hs",), "cbow-hs": ("--cbow", 1, "--hs")}


@dataclasses.dataclass(frozen=True)
class Corpus:
    name: str
    path: pathlib.Path
    words: int


def prepare(path, most_words, folder):
    """A plain copy of a text, or of its first lines with so many words."""
    path = pathlib.Path(path)
    opened = lzma.open if path.suffix == ".xz" else open
    name = path.name.split(".")[0]
    words, copy = 0, pathlib.Path(folder, f"{name}.txt")
    with opened(path, "rb") as text, open(copy, "wb") as out:
        for line in text:
            words += len(line.split())
            out.write(line)
            if most_words and words >= most_words:
                break
    return Corpus(name, copy, words)


class Programs:
    """What is run. Failed says why one gave no result."""

    def __init__(self, flags):
        self.trainer, self.tools = flags.trainer, flags.tools
        self.python = flags.python

    @staticmethod
    def add_flags(parser):
        parser.add_argument("--trainer", default=approaches.TRAINER,
                            metavar="PATH")
        parser.add_argument("--tools", type=pathlib.Path, metavar="DIR",
                            default=approaches.ROOT / "build/release/bench",
                            help="where word2vec_files and others are")
        parser.add_argument("--python", type=pathlib.Path, metavar="PATH",
                            default=VENV / "bin" / "python",
                            help="that has gensim")

    def ours(self, *words):
        return run_json([self.trainer, *words])

    def files(self, *words):
        return run_json([self.tools / "word2vec_files", *words])

    def write_synthetic(self, *words):
        run_text([self.tools / "word2vec_synthetic", *words])

    def gensim(self, *words):
        if not self.python.exists():
            raise Failed(f"{self.python}: not there; run "
                         "bench/peers/install.sh --word2vec")
        return run_json([self.python, FOLDER / "gensim_peer.py", *words])

    def core_latency(self):
        """{"cpus", "ns", "far"} of now; None where there is one CPU."""
        return self.ours("info", "--json")["core_latency"]


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    model: str
    threads: int = 1
    flags: tuple = ()  # of ours
    reader: str = ""  # of gensim; "": ours

    def train(self, programs, corpus, epochs, seed, out, more=()):
        """What the run prints; ours writes its vectors to folder `out`."""
        common = [corpus.path, *SETTINGS, "--epochs", epochs, "--seed", seed]
        if self.reader:
            return programs.gensim(
                "train", *common, *NEGATIVE, "--model", self.model, "--reader",
                self.reader, "--workers", self.threads, *more)
        return programs.ours(
            "word2vec", *common, *MODELS[self.model], *self.flags, "--threads",
            self.threads, "--out", out, "--force", "--json", *more)

    def words_per_s(self, programs, corpus, epochs, seed):
        with tempfile.TemporaryDirectory() as out:
            result = self.train(programs, corpus, epochs, seed,
                                pathlib.Path(out, "model"))
        check_words(result, corpus, epochs)
        return result["words"] / result["seconds"]


def check_words(result, corpus, epochs):
    """Where gensim's workers share a file, some lines are trained twice."""
    want, got = corpus.words * epochs, result["words"]
    if abs(got - want) > 0.01 * want:
        raise Failed(f"want {want} words trained, got {got}")


def values_of(path):
    """All of a binary file of vectors, row by row."""
    data = pathlib.Path(path).read_bytes()
    at = data.index(b"\n") + 1
    words, size = map(int, data[:at].split())
    values = array.array("f")
    for _ in range(words):
        begin = data.index(b" ", at) + 1
        at = begin + 4 * size + 1  # and a newline
        values.frombytes(data[begin:at - 1])
    return values


def difference(a, b):
    """The largest of two files of vectors, relative to the largest value."""
    a, b = values_of(a), values_of(b)
    return max(map(abs, map(operator.sub, a, b))) / max(map(abs, a))


def ours(name, model, threads=1, *flags):
    return Way(name, model, threads, flags)


def peer(model, reader, threads=1):
    suffix = f"-{threads}" if threads > 1 else ""
    return Way(f"gensim-{model}-{reader}{suffix}", model, threads, (), reader)


# In the order of a round: ours and gensim in turn.
WAYS = {way.name: way for way in (
    ours("shared", "skip-gram", 1, "--negatives", "shared"),
    peer("skip-gram", "file"),
    ours("exact", "skip-gram", 1, "--negatives", "exact"),
    peer("skip-gram", "iterator"),
    ours("cbow", "cbow"),
    peer("cbow", "file"), peer("cbow", "iterator"),
    ours("hs", "hs"),
    peer("hs", "file"), peer("hs", "iterator"),
    ours("cbow-hs", "cbow-hs"),
    peer("cbow-hs", "file"), peer("cbow-hs", "iterator"),
    ours("shared-2", "skip-gram", 2, "--negatives", "shared"),
    peer("skip-gram", "file", 2),
    ours("exact-2", "skip-gram", 2, "--negatives", "exact"),
    peer("skip-gram", "iterator", 2))}
