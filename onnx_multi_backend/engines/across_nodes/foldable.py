# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO may make constants of."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.sizes.size import is_open
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.models.contents import Contents

#: These tell of a value as long as its size is.
_SIZES = frozenset({"Shape", "Size"})


def foldable(contents: Contents, *, stays_open: bool) -> Mapping[str, TensorProto | None]:
    """`Walked.fixed` without what is computed of a Range whose length a run alone tells, as the masks of attentions are.

    What is expanded to such sizes is a constant all the same: OpenVINO takes it as it was before.

    Parameters
    ----------
    stays_open : bool
        Whether the sizes that the model leaves open are so when OpenVINO compiles it.
    """
    walked = walked_of(contents)
    if not stays_open or not contents.has({"Range"}):
        return walked.fixed
    sizes, found = sizes_of(contents), set[str]()
    for node in (node for nodes in reversed(walked.views) for node in nodes):  # the outer graphs first
        if node.operator == "Range":
            found.update(name for name in node.output if name not in walked.several and is_open(sizes.get(name)))
        elif found and node.operator not in _SIZES and not found.isdisjoint(node.input):
            found.update(name for name in node.output if name and name not in walked.several)
    return {name: tensor for name, tensor in walked.fixed.items() if name not in found} if found else walked.fixed
