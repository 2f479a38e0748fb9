# SPDX-License-Identifier: Apache-2.0
"""A session whose execution provider takes the default of an input for a constant: another value is refused, not ignored.

Seen with OpenVINO's built-in provider (1.24.1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from onnx import ModelProto

from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.engines.bounded import BoundedSession
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Feeds, Session, Value
from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.graph_walk import all_nodes, defaults_of


class DefaultsSession(BoundedSession):
    """Refuses values for inputs that keep their default, and hands all else to the session behind."""

    def __init__(self, session: Session, names: Collection[str], label: str, provider: str) -> None:
        super().__init__(session, {}, label)
        self._names = frozenset(names)
        self._told = label, provider

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Check the inputs, and run.

        Raises
        ------
        InputError
            An input is given that keeps its default.
        """
        self._check(feeds)
        return self._run(feeds, run_options)

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        self._check(feeds)
        return super().run_to_device(feeds, run_options, device)

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run, of inputs that do not keep their default."""
        self._check(inputs)
        return super().bind(inputs, outputs)

    def _check(self, feeds: Feeds) -> None:
        if self._names.isdisjoint(feeds):
            return
        label, provider = self._told
        name = sorted(self._names.intersection(feeds))[0]
        raise InputError(
            f"{label}, input {name!r}: {provider} takes its default for a constant, and would ignore this value. Leave it out, take "
            f"the initializer {name!r} out of the model, which makes it an input like others, or choose OrtCpu."
        )


def with_defaults_kept(
    session: Session, model: ModelProto, placement: Sequence[NodePlacement], provider: str, label: str
) -> Session:
    """The session; where nodes of the provider may read a default, one that refuses another value."""
    defaults = defaults_of(model.graph)
    if not defaults:
        return session
    elsewhere = {n.op_type for n in placement} - {n.op_type for n in placement if n.provider == provider}
    read = {name for node in all_nodes(model) if node.op_type not in elsewhere for name in reads(node)}
    kept = defaults & read
    return DefaultsSession(session, kept, label, provider) if kept else session
