# SPDX-License-Identifier: Apache-2.0
"""From a payload to a session: the engine is asked first, and only what it refuses is rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.defective import DefectiveNode
from onnx_multi_backend.adapt.intervals.study import Study
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.single_node import Typed, typed_of, types_shared
from onnx_multi_backend.adapt.unneeded import without_unneeded
from onnx_multi_backend.engines import widths
from onnx_multi_backend.engines.diagnosis import as_told, computed_wrongly, ends_the_process, too_large
from onnx_multi_backend.engines.made_empty import with_empty_results
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.engines.rewriting import build_rewritten
from onnx_multi_backend.engines.session import Built, Payload, RefusedError
from onnx_multi_backend.engines.special_values import inputs as special_inputs
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.engines.wrong_nodes import find_defective, wrong_in
from onnx_multi_backend.errors import FallbackWarning, InvalidModelError, OnnxMultiBackendError, UnsupportedModelError
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.graph_walk import operator_name
from onnx_multi_backend.models.plausible import expands_too_far, implausible, is_endless, multiplies, nests_too_far
from onnx_multi_backend.user_warnings import warn

#: The passes that change what an engine would refuse at once: a version that it does not read, and nodes in another order.
_MADE_READABLE = frozenset({"ir_version", "node_order", "opset_version"})
#: The one that puts casts in, behind which an engine may not see that a type is not valid before it has put functions in place.
_CAST = "edge_types"


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
    with types_shared():
        try:
            built = _compile_model(target, payload)
        except UnsupportedModelError as error:
            other = None if isinstance(error, MisplacedError) else _without_unneeded(target, payload)
            if other is None:
                raise
            built = other
        if built.fallback:
            warn(built.fallback, FallbackWarning)
        return special_inputs.watched(target, payload, built)


def _without_unneeded(target: Target, payload: Payload) -> Built | None:
    """The session of the model without the nodes that no result needs; None where there are none, or that does not help.

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
        implausible(contents.computing) is not None or expands_too_far(payload.adapted.proto) or nests_too_far(contents)
    )


def _compile_model(target: Target, payload: Payload) -> Built:
    plain = _may_be_looked_at(payload)
    _refuse_made_readable(target, payload, plain=plain)
    payload, changes = target.disarmed(payload) if payload.lowering and plain else (payload, ())
    if payload.lowering and plain:
        written, emptied = with_empty_results(target, payload)
        if emptied:
            try:
                return _compiled_whole(target, written, (*changes, *emptied), plain=plain)
            except UnsupportedModelError:  # of inputs that nothing reads any more, a provider may refuse it
                if target.deadly(payload.adapted.facts):
                    raise
    return _compiled_whole(target, payload, changes, plain=plain)


def _compiled_whole(target: Target, payload: Payload, changes: Sequence[Adaptation], *, plain: bool) -> Built:
    found = widths.look(target, payload) if plain else Study()
    elsewhere: list[MisplacedError] = []
    try:
        built = _compiled(target, payload, plain=plain, found=found, elsewhere=elsewhere)
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


def _refuse_made_readable(target: Target, payload: Payload, *, plain: bool) -> None:
    """Raise for a model that an engine would refuse at once as it is, and may never finish, or die of, once that is changed."""
    contents = payload.adapted.facts.contents
    passes = _MADE_READABLE | {_CAST} if expands_too_far(contents.model) else _MADE_READABLE
    changed = [change for change in payload.adapted.changes if change.pass_name in passes]
    if not payload.lowering or not changed:
        return
    if is_endless(contents):
        words = "its functions or subgraphs come to more nodes than the engine may ever finish"
    elif not plain and (found := implausible(contents.computing)) is not None:
        words = found
    else:
        return
    raise as_told(payload, f"it would have to be changed ({changed[0].change}), and {words}", who=target.preset)


def _with_constants_left(
    target: Target, payload: Payload, found: Study, elsewhere: list[MisplacedError]
) -> Built | None:
    """The session in which another provider reads the constants beyond int32; None where that cannot be had."""
    from onnx_multi_backend.adapt.intervals.widths import stays_within

    model = payload.adapted.proto
    if (wary := target.wary()) is None or found.overflows or not stays_within(model, found.constants):
        return None
    return build_rewritten(wary, payload, Typed(model), taken=False, trusting=True, elsewhere=elsewhere)


def _compiled(target: Target, payload: Payload, *, plain: bool, found: Study, elsewhere: list[MisplacedError]) -> Built:
    """The session; `elsewhere` takes why models are refused that are written rightly, and run where they may not then."""
    proto = payload.adapted.proto
    if payload.lowering and (deadly := target.deadly(payload.adapted.facts)):
        raise ends_the_process(payload, deadly, who=target.preset)
    lowering = changeable = payload.lowering and plain and not multiplies(proto)
    typed = typed_of(proto)
    found_defects = []
    if payload.lowering:
        found_defects = find_defective(target, payload.adapted, typed, integers=found.uncertain, values=found.values)
    if found_defects and all(_is_told_by_placement(d) for d in found_defects):
        try:
            built = target.build(payload)
        except (RefusedError, MisplacedError):
            found_defects = []  # below it is refused once more, and rewritten for that
        else:
            if not wrong_in(built.session, found_defects):
                return built
    if found_defects:
        made: Built | None = None
        if lowering:
            target.check_options()  # wrong ones would look like nodes that the engine lacks
            compilable = not any(d.defect.deadly for d in found_defects)

            def unless_invalid() -> None:
                if compilable:
                    _refuse_invalid(target, payload)

            rewrite = partial(
                build_rewritten, target, payload, typed, taken=False, deadly=not compilable, elsewhere=elsewhere
            )
            made = rewrite(trusting=True, found=found_defects, before_asking=unless_invalid) or rewrite()
            if made is None and (wrong := [d for d in found_defects if d.defect.wrong]) and wrong != found_defects:
                made = rewrite(trusting=True, found=wrong, nothing_else=True)
        if made is not None:
            return made
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
        lacks_memory = isinstance(error, RefusedError) and error.lacks_memory
        if changeable and not lacks_memory:
            rewritten = None
            if lowering:
                rewritten = build_rewritten(target, payload, typed, taken=taken, complaint=words, elsewhere=elsewhere)
            if rewritten is None and isinstance(error, RefusedError):
                rewritten = _with_named_left(target, payload)
            if rewritten is not None and not wrong_in(rewritten.session, found_defects):
                return rewritten
        if isinstance(error, RefusedError):
            if elsewhere:
                raise elsewhere[0] from None
            if lacks_memory:
                raise too_large(payload, error.words, who=target.preset) from error.__cause__
            told = target.explain(payload, error) if plain else as_told(payload, error.words, who=target.preset)
            raise told from error.__cause__
        raise
    if wrong := wrong_in(built.session, found_defects):
        if payload.lowering and plain and (left := _with_wrong_left(target, payload, wrong)) is not None:
            return left
        raise elsewhere[0] if elsewhere else _computed_wrongly(target, payload, wrong)
    return built


def _is_told_by_placement(found: DefectiveNode) -> bool:
    """Whether a node is wrong only if a provider takes what holds it, which the session tells."""
    defect = found.defect
    return bool(found.within and defect.provider and defect.wrong and not defect.deadly)


def _with_wrong_left(target: Target, payload: Payload, wrong: list[DefectiveNode]) -> Built | None:
    """The session in which another provider computes what this one would compute wrongly; None where that cannot be had.

    It is for a node whose rewritten form an engine has, but not beside the other nodes of the model.
    """
    changed, changes = target.leaving(payload, [found.node for found in wrong if not found.within])
    if not changes:
        return None
    try:
        built = target.build(changed)
    except (RefusedError, OnnxMultiBackendError):
        return None
    proto = changed.adapted.proto
    still = wrong_in(built.session, find_defective(target, changed.adapted, typed_of(proto), integers=True))
    return None if still else built.after(changes)


def _with_named_left(target: Target, payload: Payload) -> Built | None:
    """The session in which another provider computes the nodes that refusals name; None where that cannot be had.

    Raises
    ------
    MisplacedError
        No other node of the model is left.
    """
    if (leaving := target.leaving_named()) is None:
        return None
    try:
        return leaving.build(payload)
    except MisplacedError:
        raise
    except (RefusedError, OnnxMultiBackendError):
        return None


def _computed_wrongly(target: Target, payload: Payload, wrong: list[DefectiveNode]) -> UnsupportedModelError:
    return computed_wrongly(payload, [(d.node, d.defect.words) for d in wrong], who=target.preset)


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
