# SPDX-License-Identifier: Apache-2.0
"""The session of a model in which what the engine lacks, or computes wrongly, is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from onnx import ModelProto

from onnx_multi_backend.adapt.defective import DefectiveNode
from onnx_multi_backend.adapt.engine import Trusting, Unasked
from onnx_multi_backend.adapt.pipeline import Adapted
from onnx_multi_backend.adapt.single_node import Typed
from onnx_multi_backend.engines.made_empty import with_empty_results
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.engines.session import Built, NoOtherWayError, Payload, RefusedError
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.engines.wrong_nodes import find_defective, wrong_in
from onnx_multi_backend.errors import OnnxMultiBackendError, OptionError


def build_rewritten(
    target: Target,
    payload: Payload,
    typed: Typed,
    *,
    taken: bool,
    trusting: bool = False,
    found: Sequence[DefectiveNode] | None = None,
    complaint: str = "",
    nothing_else: bool = False,
    again: bool = False,
    deadly: bool = False,
    elsewhere: list[MisplacedError] | None = None,
    before_asking: Callable[[], None] | None = None,
) -> Built | None:
    """The session of the rewritten model; None where there is nothing to rewrite, or the engine refuses that too.

    The rules' pieces are shown to the engine together first, in the whole model; one by one where it refuses that.

    `trusting`: only what the engine computes wrongly is rewritten, and the first of its ways of asking is tried alone.
    `found`: what the engine computes wrongly, where that is known. `nothing_else`: no other node is rewritten, whoever is asked.
    `again`: it is a model that was rewritten already. `deadly`: a node of it may end the process, and is not to be left.
    `before_asking`: is called where the engine refuses the whole.
    """
    from onnx_multi_backend.adapt.lowering import lower

    engines_to_ask = target.engines_to_ask(taken=taken)
    tried: set[bytes] = set()
    for engine, within in engines_to_ask[:1] if trusting else engines_to_ask:
        own = target.runs_alone and engine is target and within is target  # all of them find the same
        known = found is not None and (own or nothing_else)
        wrong = frozenset(name for d in found or () for name in d.node.output if name) if known else None
        asked = Trusting(engine, target.may_have_defect, wrong) if trusting else engine
        for pieces in (Unasked(within), within):
            rewritten = lower(
                payload.adapted, asked, pieces, complaint=complaint, patience=payload.patience, typed=typed
            )
            helped, shown = False, 0
            misplaced: list[MisplacedError] = []
            for adapted in rewritten:
                helped = True
                if (written := _digest(adapted.proto)) in tried:  # another way of asking that comes to the same
                    continue
                tried.add(written)
                shown += 1
                settled = own and adapted.settled
                built = _built(
                    target, payload, adapted, settled=settled, again=again, deadly=deadly, elsewhere=misplaced
                )
                if built is not None:
                    return built
            if elsewhere is not None:
                elsewhere += misplaced
            if not helped:  # no rule helps, so none does whose pieces the engine has
                break
            if shown and len(misplaced) == shown:  # the engine has all the pieces, and runs them elsewhere
                break
            if before_asking is not None and pieces is not within:
                before_asking()
    return None


def _digest(model: ModelProto) -> bytes:
    """What stands for all of a model that rewriting changes."""
    import hashlib  # 3 ms, which a model that its engine takes need not wait for

    found = hashlib.blake2b(digest_size=16)
    for part in (*model.opset_import, *model.graph.node):
        data = part.SerializeToString()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.digest()


def _around_nothing(target: Target, payload: Payload) -> Built:
    """The session of the payload without what it computes of nothing; with it where an engine refuses that (a provider may, of inputs that nothing reads any more)."""
    written, emptied = with_empty_results(target, payload)
    try:
        return target.build(written).after(emptied)
    except RefusedError:
        if not emptied:
            raise
    return target.build(payload)


def _built(
    target: Target,
    payload: Payload,
    adapted: Adapted,
    *,
    settled: bool,
    again: bool,
    deadly: bool,
    elsewhere: list[MisplacedError] | None,
) -> Built | None:
    """The session of a rewritten model; None where the engine refuses it or computes it wrongly.

    What takes a node's place may tell less of its numbers than the node did: what reads them is then rewritten too. Where it tells
    as much (`settled`), only those nodes are looked at once more that had given no reason before.
    """
    changes = adapted.changes[len(payload.adapted.changes) :]
    if target.deadly(adapted.facts):
        return None
    typed = Typed(adapted.proto)
    before = payload.adapted.facts if settled else None
    found = find_defective(target, adapted, typed, integers=not settled, before=before) if deadly else None
    if any(d.defect.deadly for d in found or ()):
        return None
    built: Built | None
    try:
        built = _around_nothing(target, replace(payload, adapted=adapted))
    except (NoOtherWayError, OptionError):
        raise
    except MisplacedError as error:
        if elsewhere is not None:
            elsewhere.append(error)
        return None
    except RefusedError as error:
        payload.patience.blame(error.words)
        return None
    except OnnxMultiBackendError:
        return None
    if found is None:
        found = find_defective(target, adapted, typed, integers=not settled, before=before)
    if wrong_in(built.session, found):
        if again:
            return None
        built = build_rewritten(
            target, replace(payload, adapted=adapted), typed, taken=False, trusting=True, found=found, again=True
        )
    return None if built is None else built.after(changes)
