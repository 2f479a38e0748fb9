# SPDX-License-Identifier: Apache-2.0
"""What is known of the OpenVINO execution provider, in a wheel and as a plugin. Its tables are imported only where it is used."""

from __future__ import annotations

import functools
from dataclasses import replace

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.defect import worse
from onnx_multi_backend.engines.openvino import defects as of_openvino
from onnx_multi_backend.engines.openvino import integers as of_integers
from onnx_multi_backend.engines.openvino import special_values
from onnx_multi_backend.engines.openvino.empty_constants import WRONG_IN_EMPTY_RUNS, WRONG_WHEN_EMPTY
from onnx_multi_backend.engines.openvino.limits import OpenvinoLimits
from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.engines.ort.deadly import OF_OPENVINO, OF_OPENVINO_BEFORE_1_31
from onnx_multi_backend.engines.ort.defects import Table
from onnx_multi_backend.engines.ort.openvino_ep import threads
from onnx_multi_backend.engines.ort.records import Record
from onnx_multi_backend.host import devices


def _with_integers(table: Table) -> Table:
    """A table, with what OpenVINO makes of integers."""

    def find(site: Site) -> Defect | None:
        return worse(table.find(site), of_integers.find(site))

    def special(site: Site) -> Defect | None:
        return of_integers.find(site, written=True) or table.special(site)

    return table._replace(find=find, special=special, integers=of_integers.may_have_defect, integer_operators=None)


def _table_of_openvino(release: str) -> Table:
    """OpenVINO's own table, by the release that a provider holds."""
    inside = {"openvino": release}
    find = functools.partial(of_openvino.find, inside=inside)
    may_have_defect = functools.partial(of_openvino.may_have_defect, inside=inside)
    return Table(may_have_defect, of_openvino.OPERATORS, find, special_values.find)


def _spoils(error: Exception) -> bool:
    """Whether an error leaves OpenVINO with sizes of a run that failed: it may be anyone's of the nodes behind it."""
    return True


_OPENVINO = Record(
    family=devices.OPENVINO,
    needs="a processor, GPU or NPU of Intel's",
    cure=f"{runtime.install_instead('onnxruntime-openvino')}; or on an Intel host add the plugin: pip install "
    "onnxruntime-ep-openvino",
    mixes_reductions=True,
    mixes_nodes=True,
    wrong_when_empty=WRONG_WHEN_EMPTY,
    wrong_in_empty_runs=WRONG_IN_EMPTY_RUNS,
    values_lost=special_values.LOST_IN_PROVIDER,
    reads_flags=False,
    spoiled_by=_spoils,
    serial=threads.one_stream,
)

#: onnxruntime-openvino 1.24.1, with OpenVINO 2025.4 inside.
BUILT_IN = replace(
    _OPENVINO,
    device_option="device_type",
    takes_no_empty_tensors=True,
    miscounts_inputs=True,
    loses_errors=True,
    zero_packed_outputs=True,
    least_nodes=4,
    drops_cast_pairs=True,
    leaves_text=True,
    joins_lone_nodes=True,
    forgets_ranks=True,
    keeps_defaults=True,
    narrows=True,
    deadly={**OF_OPENVINO, **OF_OPENVINO_BEFORE_1_31},
    defects=_with_integers(_table_of_openvino("2025.4.1")),
)

#: What gives 0 for the sizes that only a run tells, of a tensor that is known to have no elements: OpenVINO 2026.4, which is mended where it reads a
#: model itself.
_LOSING_SIZES = frozenset({"ArgMax", "ArgMin", "ConcatFromSequence", "Scan", "Squeeze", "Unsqueeze"})

#: onnxruntime-ep-openvino 1.8.1, with OpenVINO 2026.4.1 inside.
PLUGIN = replace(
    _OPENVINO,
    wrong_when_empty=WRONG_WHEN_EMPTY | _LOSING_SIZES,
    wrong_in_empty_runs=WRONG_IN_EMPTY_RUNS | _LOSING_SIZES,
    known_options=frozenset({"load_config", "reshape_input"}),
    loses_empty_inputs=True,
    copies_bound_inputs=True,
    takes_no_empty_tensors=True,
    breaks_memory=True,
    deadly=OF_OPENVINO,
    meta="AUTO",
    inside=OpenvinoLimits(),
    narrows=True,
    defects=_with_integers(_table_of_openvino("2026.4.1")),
)
