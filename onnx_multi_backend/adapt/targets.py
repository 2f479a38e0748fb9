# SPDX-License-Identifier: Apache-2.0
"""The opsets that an engine is to get, and which nodes mean the same in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import NodeProto, OperatorSetIdProto

from onnx_multi_backend.adapt.same_operator import unchanged
from onnx_multi_backend.adapt.single_node import opset_imports
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.graph_walk import canonical


class Targets:
    """The opset of each domain that an engine is to get. A domain that only a rule's nodes are of is added when it is met.

    Attributes
    ----------
    versions : dict of str to int
    """

    def __init__(self, versions: Mapping[str, int]) -> None:
        self.versions = dict(versions)

    @property
    def default(self) -> int:
        """The opset of the default domain."""
        return self.versions.get("", 1)

    def keep(self, node: NodeProto, opsets: Mapping[str, int]) -> bool:
        """Whether a node of these opsets means the same in the opsets that the engine is to get."""
        domain = canonical(node.domain)
        given = opsets.get(domain, 1)
        wanted = self.versions.setdefault(domain, given)
        return given == wanted or unchanged(node.op_type, domain, given, wanted)

    def imports(self, domain: str) -> list[OperatorSetIdProto]:
        """What a model of one node imports: the default domain, and the node's own."""
        return opset_imports({d: v for d, v in self.versions.items() if d in ("", domain)})


def older_opsets(refused: Iterable[Site], opset: int) -> Iterator[int]:
    """Opsets, older than this one, in which a node that was refused means the same: an older kernel may take it."""
    for site in refused:
        schema = site.schema
        if not site.domain and schema is not None and schema.since_version <= opset and schema.since_version > 7:
            older = schema.since_version - 1
            if unchanged(site.op_type, "", site.opset, older):
                yield older
