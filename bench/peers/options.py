# SPDX-License-Identifier: Apache-2.0
"""The flags every peer has, and its threads.

Imports nothing but the standard library: the libraries read the number of
threads when they are loaded, so parse() comes before their import.
"""
import argparse
import os


def parse(modes=(), argv=None, many=False):
    """The flags of the command line, the process held to --threads cores.

    With `many`, --lr has the rate of each of many models.
    """
    parser = argparse.ArgumentParser(
        description="Trains an MLP, prints a JSON object with the mean loss "
                    "and the seconds of each epoch.")
    parser.add_argument("--data", required=True,
                        help="folder of IDX files, plain or .gz")
    parser.add_argument("--model", default="784-128-10", type=widths,
                        help="layer widths [%(default)s]")
    parser.add_argument("--batch", default=32, type=int, help="rows of a step")
    parser.add_argument("--epochs", default=5, type=int)
    parser.add_argument("--lr", default=[0.1] if many else 0.1,
                        type=rates if many else float)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--validation", default=0.2, type=float,
                        help="share of the train rows, the last, not trained")
    parser.add_argument("--threads", default=2, type=int)
    if modes:
        parser.add_argument("--mode", default=modes[0], choices=modes)
    args = parser.parse_args(argv)
    if args.threads < 1:
        parser.error("--threads: want 1 or more")
    hold_to_threads(args.threads)
    return args


def widths(text):
    return [int(word) for word in text.split("-")]


def rates(text):
    return [float(word) for word in text.split(",")]


def hold_to_threads(threads):
    # JAX and XLA have no other knob for all of their pools than the cores that
    # they see; the rest is held to them too, so that all are alike.
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise SystemExit(f"--threads {threads}: there are {len(cores)} cores")
    os.sched_setaffinity(0, cores[:threads])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                 "NPROC",  # XLA's pools
                 "TF_NUM_INTRAOP_THREADS"):
        os.environ[name] = str(threads)
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    # Set on some machines for the sake of old builds of OpenBLAS. The one
    # inside the pinned NumPy knows newer processors and is faster unforced.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
