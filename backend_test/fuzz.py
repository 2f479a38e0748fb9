# SPDX-License-Identifier: Apache-2.0
"""Mutated models on a preset, beside the bare engine: nothing dies, hangs, takes more memory or raises an untyped exception.

``python -m backend_test.fuzz --preset OrtCpu --count 2000 --seed 7``; mutant i is a function of the seed and i.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
import time
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the process that forks has one thread

from google.protobuf.message import DecodeError
from onnx import ModelProto

from backend_test.search import engines, mutations
from backend_test.search.answers import FATAL, REFUSED, RESULT, UNTYPED, Answer
from backend_test.search.cases import cases
from backend_test.search.command import Outcome, main
from backend_test.search.findings import Finding
from backend_test.search.isolation import Stages
from backend_test.search.mutations.seeds import Seed, draw_seed, feeds_for
from backend_test.search.shrink import fuzz_signature
from backend_test.soak import rewritten_model, small_model

#: What a refusal may take beyond twice the engine's time, in seconds of the processor.
_PATIENCE = 1.0
#: Seconds that the bare engine may take. What takes it longer tells nothing of a preset, and was three quarters of the time of a search.
_BARE_SECONDS = 5.0
#: One mutant of so many is prepared once more where its compatibility is asked.
_ANEW = 8


class Mutant(NamedTuple):
    """A model that is tried: its bytes, its inputs where there are any, and what was done to it."""

    data: bytes
    feeds: dict[str, Any] | None
    done: list[str]


def make(seed: Seed, chosen: Sequence[Any], bytes_seed: int | None, number: str) -> Mutant:
    """The mutant of a seed, some mutations and perhaps a change of its bytes."""
    model, done = mutations.apply(seed.model, chosen)
    feeds = feeds_for(model, seed, random.Random(number))
    data = model.SerializeToString()
    if bytes_seed is not None:
        data, told = mutations.change_bytes(data, random.Random(bytes_seed))
        done = [*done, f"bytes: {told}"]
    return Mutant(data, feeds, done)


class Tried(NamedTuple):
    """What came of a mutant: a category, and the answers."""

    category: str
    answers: dict[str, Answer]


@functools.cache
def warm(preset: str) -> Answer:
    """Load engine and preset, so that the first mutant of a process is not slow for that."""
    for model in (small_model(), rewritten_model()):
        engines.preset(preset, model.SerializeToString(), [])
    return engines.bare_of(preset)(small_model().SerializeToString(), [])


def attempt(preset: str, mutant: Mutant, stages: Stages, word: str = "") -> Tried:
    """The bare engine, the preset, and what the preset says of the model's compatibility, where that ended well."""
    feeds = [] if mutant.feeds is None else [mutant.feeds]
    took: dict[str, float] = {}
    stages.run("warm", lambda note: warm(preset))

    def timed(name: str, ask: Any) -> Any:
        def work(note: Any) -> Answer:
            before = time.process_time()
            answer: Answer = ask(note)
            took[name] = time.process_time() - before
            return answer

        return work

    bare = engines.bare_of(preset)
    ask = timed("bare", lambda note: bare(mutant.data, feeds, note))
    answers = {"bare": stages.run(f"{word}bare", ask, seconds=_BARE_SECONDS)}
    if answers["bare"].kind in FATAL:
        return Tried(f"bare {answers['bare'].kind}", answers)
    extra = stages.taken.get(f"{word}bare", 0)
    kept = engines.Kept()
    ask = timed("ours", lambda note: engines.preset(preset, mutant.data, feeds, note, kept))
    answers["ours"] = stages.run(f"{word}ours", ask, extra)
    if answers["ours"].kind in (*FATAL, UNTYPED):
        return Tried(answers["ours"].kind, answers)
    if _prepared_anew(mutant):
        kept = engines.Kept()
    answers["compatibility"] = stages.run(
        f"{word}compatibility", lambda note: engines.compatibility(preset, mutant.data, note, kept), extra
    )
    if answers["compatibility"].kind in (*FATAL, UNTYPED):
        return Tried(answers["compatibility"].kind, answers)
    refused = answers["ours"].kind == REFUSED and answers["ours"].place == "prepare"
    if refused and took.get("ours", 0) > 2 * took.get("bare", 0) + _PATIENCE:
        answers["ours"].error += f" (after {took['ours']:.1f} s; the engine took {took['bare']:.1f} s)"
        return Tried("slow", answers)
    kinds = [answers[name].kind for name in ("bare", "ours")]
    return Tried("ok" if kinds == [RESULT, RESULT] else f"bare {kinds[0]}, ours {kinds[1]}", answers)


def _prepared_anew(mutant: Mutant) -> bool:
    """Whether `compatibility` prepares a mutant once more: one of so many does, the others are told what preparing came to."""
    return zlib.crc32(mutant.data) % _ANEW == 0


def mutant_work(preset: str, options: argparse.Namespace) -> Any:
    """The work on one mutant."""
    seed, only = options.seed, options.cases
    cases()  # generated once, in the process that forks

    def work(i: int, stages: Stages) -> Outcome:
        rng = random.Random(f"{seed}:{i}")
        start = draw_seed(rng, only)
        chosen: list[Any] = mutations.draw(rng)
        bytes_seed = rng.randrange(1 << 32) if rng.random() < 0.12 else None
        if bytes_seed is not None and rng.random() < 0.7:
            chosen = []
        try:
            mutant = make(start, chosen, bytes_seed, f"{seed}:{i}")
        except DecodeError:  # protobuf itself does not read what nests so deeply
            return Outcome("not made")
        tried = attempt(preset, mutant, stages)
        if tried.category not in (*FATAL, UNTYPED, "slow"):
            return Outcome(tried.category)
        category = tried.category
        for count, fewer in enumerate(_fewer(chosen)):
            smaller = make(start, fewer, bytes_seed, f"{seed}:{i}")
            again = attempt(preset, smaller, stages, f"part {count} ")
            if again.category == category:
                mutant, tried = smaller, again
                break
        name = fuzz_signature(preset, category, tried.answers, _operators(mutant.data))
        lines = [f"mutant {i} of {start.name}, on {preset}: {category}", *mutant.done]
        lines += [f"\n{n}: {a}" for n, a in tried.answers.items()]
        finding = Finding(name, category, mutant.data, "\n".join(lines), [mutant.feeds] if mutant.feeds else [])
        return Outcome(category, "; ".join(mutant.done)[:300], finding, counts=True)

    return work


def _fewer(chosen: list[Any]) -> list[list[Any]]:
    """Each mutation alone, the last first, where there are several."""
    return [[one] for one in reversed(chosen)] if len(chosen) > 1 else []


def _operators(data: bytes) -> str:
    try:
        model = ModelProto.FromString(data)
        found = sorted({n.op_type for n in model.graph.node})
    except (DecodeError, UnicodeDecodeError):
        return "unreadable"
    return "+".join(found) if len(found) <= 4 else "many"


def more_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this search has."""
    parser.add_argument(
        "--cases", default="", help="only ONNX's own cases whose names have this word; other mutants then"
    )


if __name__ == "__main__":
    sys.exit(main("fuzz", str(__doc__), mutant_work, more_options))
