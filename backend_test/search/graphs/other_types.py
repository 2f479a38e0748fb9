# SPDX-License-Identifier: Apache-2.0
"""Recipes: sequences, optionals and text."""

from __future__ import annotations

from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import NoFitError, Value
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import recipe


def sequence(d: Draft) -> Value:
    """A sequence that is there, or a new one."""
    found = [x for x in d.b.values if x.types[0].WhichOneof("value") == "sequence_type"]
    if found and d.b.chance(0.8):
        return d.rng.choice(found)
    inner = Draft(d.b, "SequenceConstruct")
    first = inner.x("T", ranks=(1, 2, 3))
    for _ in range(d.rng.randint(0, 2)):
        inner.x("T", dims=first.dims)
    return inner.done()[0]


def kind_inside(value: Value) -> int:
    return int(value.types[0].sequence_type.elem_type.tensor_type.elem_type)


@recipe("SequenceConstruct")
def construct(d: Draft) -> list[Value]:
    first = d.x("T", ranks=(1, 2, 3))
    for _ in range(d.rng.randint(0, 2)):
        d.x("T", dims=first.dims)
    return d.done()


@recipe("SequenceEmpty")
def empty(d: Draft) -> list[Value]:
    d.attr("dtype", d.rng.choice((TensorProto.FLOAT, TensorProto.INT64)), 0.7)
    return d.done()


@recipe("SequenceAt")
def at(d: Draft) -> list[Value]:
    d.inputs.append(sequence(d))
    d.given(d.rng.choice((0, -1)), kind=d.kind("I"))
    return d.done()


@recipe("SequenceLength")
def length(d: Draft) -> list[Value]:
    d.inputs.append(sequence(d))
    return d.done()


@recipe("SequenceErase")
def erase(d: Draft) -> list[Value]:
    d.inputs.append(sequence(d))
    if d.b.chance(0.6):
        d.given(d.rng.choice((0, -1)), kind=d.kind("I"))
    return d.done()


@recipe("SequenceInsert")
def insert(d: Draft) -> list[Value]:
    value = sequence(d)
    d.inputs.append(value)
    d.settled["T"] = kind_inside(value)
    d.x("T", ranks=(1, 2))
    if d.b.chance(0.6):
        d.given(d.rng.choice((0, -1)), kind=d.kind("I"))
    return d.done()


@recipe("ConcatFromSequence")
def concat(d: Draft) -> list[Value]:
    d.inputs.append(sequence(d))
    if d.b.chance(0.3):
        d.attr("new_axis", 1)
    d.attr("axis", 0)
    return d.done()


@recipe("SplitToSequence")
def split(d: Draft) -> list[Value]:
    first = d.x("T", ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    d.attr("axis", axis, 1 if axis else 0.5)
    if d.b.chance(0.6):
        d.given(d.rng.choice((1, 2)), kind=TensorProto.INT64)
    else:
        d.attr("keepdims", d.rng.randrange(2), 0.6)
    return d.done()


@recipe("StringNormalizer")
def normalizer(d: Draft) -> list[Value]:
    d.x("tensor(string)", ranks=(1,), least=1)
    d.attr("case_change_action", d.rng.choice(("LOWER", "UPPER", "NONE")), 0.8)
    d.attr("is_case_sensitive", d.rng.randrange(2), 0.6)
    d.attr("stopwords", ["a", "abc"], 0.5)
    return d.done()


@recipe("StringSplit")
def string_split(d: Draft) -> list[Value]:
    d.x("T1", ranks=(0, 1, 2), least=1)
    d.attr("delimiter", d.rng.choice(("", " ", "-", "b")), 0.7)
    d.attr("maxsplit", d.rng.choice((1, 2)), 0.4)
    return d.done(2)


@recipe("RegexFullMatch")
def regex(d: Draft) -> list[Value]:
    d.x("T1", ranks=(0, 1, 2))
    d.attr("pattern", d.rng.choice(("a.*", "[a-z]+", r"-?\d+(\.\d+)?", "")))
    return d.done()


@recipe("TfIdfVectorizer")
def tf_idf(d: Draft) -> list[Value]:
    kind = d.rng.choice((TensorProto.INT32, TensorProto.INT64))
    size = d.rng.randint(2, 6)
    d.given(v.numbers(d.rng, kind, size) % 4, kind=kind)
    d.attr("mode", d.rng.choice(("TF", "IDF", "TFIDF")))
    d.attr("max_skip_count", d.rng.randrange(2))
    d.attr("min_gram_length", 1)
    d.attr("max_gram_length", 2)
    d.attr("ngram_counts", [0, 3])
    d.attr("ngram_indexes", [0, 1, 2, 3, 4])
    d.attr("pool_int64s", [1, 2, 3, 1, 2, 2, 3])
    d.attr("weights", [1.0, 0.5, 2.0, 1.0, 3.0])
    return d.done()


@recipe("Optional")
def optional(d: Draft) -> list[Value]:
    d.inputs.append(_some(d))
    return d.done()


@recipe("OptionalHasElement", "OptionalGetElement")
def unwrap(d: Draft) -> list[Value]:
    found = [x for x in d.b.values if x.types[0].WhichOneof("value") == "optional_type"]
    if not found:
        inner = Draft(d.b, "Optional")
        inner.inputs.append(_some(d))
        found = inner.done()
    d.inputs.append(d.rng.choice(found))
    return d.done()


def _some(d: Draft) -> Value:
    tensors = [x for x in d.b.values if x.kind and x.dims is not None]
    if not tensors:
        raise NoFitError("there is nothing to wrap")
    return d.rng.choice(tensors)
