# SPDX-License-Identifier: Apache-2.0
"""From a payload to a session: the engine is asked first, and only what it refuses is rewritten."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from onnx import ModelProto

from onnx_multi_backend.adapt.defective import DefectiveNode, defective_nodes
from onnx_multi_backend.adapt.engine import Trusting, Unasked
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.pipeline import Adapted
from onnx_multi_backend.adapt.single_node import Typed
from onnx_multi_backend.adapt.unneeded import without_unneeded
from onnx_multi_backend.adapt.widths import Study, stays_within
from onnx_multi_backend.engines import special_inputs, widths
from onnx_multi_backend.engines.diagnosis import as_told, computed_wrongly, ends_the_process
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.engines.session import Built, Payload, RefusedError, Session
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import InvalidModelError, OnnxMultiBackendError, OptionError, UnsupportedModelError
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.graph_walk import operator_name
from onnx_multi_backend.models.plausible import expands_too_far, implausible, is_endless, multiplies, nests_too_far

#: The passes that bring a version down which an engine does not read.
_VERSIONS = frozenset({"ir_version", "opset_version"})


def compile_model(target: Target, payload: Payload) -> Built:
    """Compile a model, rewriting what the engine lacks where the payload allows it.

    A model that the engine takes, and computes rightly, goes to it untouched. One that it would compute wrongly, and
    that no rule can rewrite, is refused; where rewriting is switched off, it goes to the engine as it stands.

    Raises
    ------
    UnsupportedModelError
        The engine refuses the model or computes it wrongly, rewritten or not; or its placement breaks the ``fallback``
        policy.
    InvalidModelError
        The model is not valid, which is why the engine refused it.
    """
    try:
        built = _compile_model(target, payload)
    except UnsupportedModelError as error:
        other = None if isinstance(error, MisplacedError) else _without_unneeded(target, payload)
        if other is None:
            raise
        built = other
    return special_inputs.watched(target, payload, built)


def _without_unneeded(target: Target, payload: Payload) -> Built | None:
    """The session of the model without the nodes that no result needs; None where there are none, or that is no help.

    Raises
    ------
    UnsupportedModelError
        A node that is needed is refused too: that is what the user is told.
    """
    proto = payload.adapted.proto
    if not payload.lowering or not _may_be_looked_at(payload):
        return None
    model, changes = without_unneeded(proto)
    if not changes:
        return None
    try:
        return _compile_model(target, replace(payload.changed(model, *changes), patience=Patience())).after(changes)
    except UnsupportedModelError:
        raise
    except OnnxMultiBackendError:
        return None


def _may_be_looked_at(payload: Payload) -> bool:
    """Whether more is asked about a model than what the engine says of the whole."""
    contents = payload.adapted.facts.contents
    return not (
        implausible(contents.nodes) is not None or expands_too_far(payload.adapted.proto) or nests_too_far(contents)
    )


def _compile_model(target: Target, payload: Payload) -> Built:
    plain = _may_be_looked_at(payload)
    _refuse_endless(target, payload)
    payload, changes = target.disarmed(payload) if payload.lowering and plain else (payload, ())
    found = widths.look(target, payload) if plain else Study()
    elsewhere: list[MisplacedError] = []
    try:
        built = _compiled(target, payload, plain=plain, integers=found.uncertain, elsewhere=elsewhere)
    except UnsupportedModelError as error:
        readers = {operator_name(concern.node) for concern in found.constants}
        refused = (
            target.runs_alone and error.operators and readers.issuperset(error.operators)
        )  # however they are written
        if refused and not target.deadly(payload.adapted.facts):
            raise computed_wrongly(payload, found.constants, who=target.preset) from None
        raise
    try:
        return (built if found.is_clear else widths.held(target, payload, built, found)).after(changes)
    except UnsupportedModelError:
        if plain and found.constants and (other := _with_constants_left(target, payload, found, elsewhere)) is not None:
            return widths.held(target, payload, other, found).after(changes)
        if elsewhere:
            raise elsewhere[0] from None
        raise


def _refuse_endless(target: Target, payload: Payload) -> None:
    """Raise for a model that an engine would refuse at once as it is, and may never finish once its version is brought down."""
    lowered = [change for change in payload.adapted.changes if change.pass_name in _VERSIONS]
    if payload.lowering and lowered and is_endless(payload.adapted.facts.contents):
        said = f"it needs {lowered[0].change}, and its functions or subgraphs come to more nodes than the engine may ever finish"
        raise as_told(payload, said, who=target.preset)


def _with_constants_left(
    target: Target, payload: Payload, found: Study, elsewhere: list[MisplacedError]
) -> Built | None:
    """The session in which another provider reads the constants beyond int32; None where that cannot be had."""
    model = payload.adapted.proto
    if (wary := target.wary()) is None or found.overflows or not stays_within(model, found.constants):
        return None
    return _lowered(wary, payload, Typed(model), taken=False, trusting=True, elsewhere=elsewhere)


def _compiled(
    target: Target, payload: Payload, *, plain: bool, integers: bool, elsewhere: list[MisplacedError]
) -> Built:
    """The session; `elsewhere` takes why models are refused that are written rightly, and run where they may not then."""
    proto = payload.adapted.proto
    if payload.lowering and (deadly := target.deadly(payload.adapted.facts)):
        raise ends_the_process(payload, deadly, who=target.preset)
    lowering = payload.lowering and plain and not multiplies(proto)
    typed = Typed(proto)
    found_defects = _defective(target, payload.adapted, typed, integers=integers) if payload.lowering else []
    if found_defects:
        built = None
        if lowering:
            target.check_options()  # wrong ones would look like nodes that the engine lacks
            compilable = not any(d.defect.deadly for d in found_defects)

            def unless_invalid() -> None:
                if compilable:
                    _refuse_invalid(target, payload)

            built = _lowered(
                target, payload, typed, taken=False, trusting=True, elsewhere=elsewhere, before_asking=unless_invalid
            ) or _lowered(target, payload, typed, taken=False, elsewhere=elsewhere)
        if built is not None:
            return built
        lowering = False  # it would come to nothing again
        if wrong := [d for d in found_defects if d.defect.deadly or (d.defect.wrong and not d.defect.provider)]:
            checks.check(payload.loaded, full=True)
            raise elsewhere[0] if elsewhere else _computed_wrongly(target, payload, wrong)
    try:
        built = target.build(payload)
    except (RefusedError, MisplacedError) as error:
        if isinstance(error, RefusedError) and not error.lacks_kernel:
            # An invalid model explains a refusal, and is not to be rewritten.
            checks.check(payload.loaded, full=True, refusal=error.words)
            target.check_options()
        words = error.words if isinstance(error, RefusedError) else ""
        taken = isinstance(error, MisplacedError)
        rewritten = _lowered(target, payload, typed, taken=taken, complaint=words) if lowering else None
        if rewritten is not None:
            return rewritten
        if isinstance(error, RefusedError):
            told = target.explain(payload, error) if plain else as_told(payload, error.words, who=target.preset)
            raise told from error.__cause__
        raise
    if wrong := _wrong(found_defects, built.session):
        raise elsewhere[0] if elsewhere else _computed_wrongly(target, payload, wrong)
    return built


def _refuse_invalid(target: Target, payload: Payload) -> None:
    """Raise `InvalidModelError` for a model that is not valid, and that the engine refuses too."""
    try:
        checks.check(payload.loaded, full=True)
    except InvalidModelError:
        try:
            target.build(payload)
        except RefusedError:
            pass
        except MisplacedError:  # it takes the model
            return
        else:
            return
        raise


def _defective(target: Target, adapted: Adapted, typed: Typed, *, integers: bool) -> list[DefectiveNode]:
    return defective_nodes(
        adapted.proto,
        target,
        target.may_have_defect,
        operators=target.defect_operators,
        integers=integers,
        typed=typed,
        facts=adapted.facts,
    )


def _computed_wrongly(target: Target, payload: Payload, wrong: list[DefectiveNode]) -> UnsupportedModelError:
    return computed_wrongly(payload, [(node, defect.words) for node, defect in wrong], who=target.preset)


def _lowered(
    target: Target,
    payload: Payload,
    typed: Typed,
    *,
    taken: bool,
    trusting: bool = False,
    complaint: str = "",
    again: bool = False,
    elsewhere: list[MisplacedError] | None = None,
    before_asking: Callable[[], None] | None = None,
) -> Built | None:
    """The session of the rewritten model; None where there is nothing to rewrite, or the engine refuses that too.

    The rules' pieces are shown to the engine together first, in the whole model; one by one where it refuses that.

    `trusting`: only what the engine computes wrongly is rewritten, and the first of its ways of asking is tried alone.
    `again`: it is a model that was rewritten already. `before_asking`: is called where the engine refuses the whole.
    """
    from onnx_multi_backend.adapt.lowering import lower

    engines_to_ask = target.engines_to_ask(taken=taken)
    tried: set[bytes] = set()
    for engine, within in engines_to_ask[:1] if trusting else engines_to_ask:
        asked = Trusting(engine, target.may_have_defect) if trusting else engine
        for pieces in (Unasked(within), within):
            rewritten = lower(
                payload.adapted, asked, pieces, complaint=complaint, patience=payload.patience, typed=typed
            )
            helped, shown = False, 0
            misplaced: list[MisplacedError] = []
            for lowered in rewritten:
                helped = True
                if (written := _digest(lowered.proto)) in tried:  # another way of asking that comes to the same
                    continue
                tried.add(written)
                shown += 1
                if (built := _built(target, payload, lowered, again=again, elsewhere=misplaced)) is not None:
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
    found = hashlib.blake2b(digest_size=16)
    for part in (*model.opset_import, *model.graph.node):
        data = part.SerializeToString()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.digest()


def _built(
    target: Target, payload: Payload, lowered: Adapted, *, again: bool, elsewhere: list[MisplacedError] | None
) -> Built | None:
    """The session of a rewritten model; None where the engine refuses it or computes it wrongly.

    What takes a node's place may tell less of its numbers than the node did: what reads them is then rewritten too.
    """
    changes = lowered.changes[len(payload.adapted.changes) :]
    if target.deadly(lowered.facts):
        return None
    built: Built | None
    try:
        built = target.build(replace(payload, adapted=lowered))
    except OptionError:
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
    typed = Typed(lowered.proto)
    if _wrong(_defective(target, lowered, typed, integers=True), built.session):
        if again:
            return None
        built = _lowered(target, replace(payload, adapted=lowered), typed, taken=False, trusting=True, again=True)
    return None if built is None else built.after(changes)


def _wrong(found_defects: list[DefectiveNode], session: Session) -> list[DefectiveNode]:
    """The doubtful nodes whose results are wrong where the session runs them."""
    found = [d for d in found_defects if d.defect.wrong]
    if not any(d.defect.provider for d in found):
        return found
    placed = {(node.provider, node.op_type) for node in session.placement()}
    return [d for d in found if not d.defect.provider or (d.defect.provider, d.node.op_type) in placed]
