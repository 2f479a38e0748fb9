# SPDX-License-Identifier: Apache-2.0
"""What is known of each execution provider: one record a provider, and another where it comes as a plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.site import Rule
from onnx_multi_backend.engines.deadly import Deadly
from onnx_multi_backend.engines.ort import defects, plugins, runtime
from onnx_multi_backend.engines.ort.defects import Table
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import DeviceFamily

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"

#: ONNX Runtime with CUDA and TensorRT, and the libraries that CUDA needs.
GPU_WHEEL = "onnxruntime-gpu[cuda,cudnn]"


@dataclass(frozen=True)
class Record:
    """What is known of an execution provider.

    Attributes
    ----------
    family : DeviceFamily
        How its devices are written.
    cure : str
        What to do where the wheel lacks it.
    needs : str
        The hardware without which it has no device, where it does not say so itself.
    nvidia_library : str
        Stem of its library in the wheel, where it runs on CUDA devices.
    on_cuda : bool
        Whether it runs on NVIDIA's GPUs.
    device_option : str
        The option that names the device; empty where it has none or takes the device from an OrtEpDevice.
    device_by_index : bool
        Whether that option wants the device's number alone.
    slow_builds : bool
        Whether asking it about one node takes too long.
    least_nodes : int
        How many nodes a model has, at the least, for it to take each of them that it takes among others.
    miscounts_inputs : bool
        Whether it reads the wrong inputs where some are unused.
    drops_cast_pairs : bool
        Whether it leaves outputs unwritten (of float16 that are cast to float32 for others, or of nodes that pass an input on), or reads
        other memory for float16 constants; see `cast_pairs`, `single_operands`, `half_constants`.
    mixes_reductions : bool
        Whether it has a reduction of integers compute the arithmetic behind it, wrongly.
    joins_lone_nodes : bool
        Whether it also joins a node to others that depend on it through other nodes; see `computed_twice`.
    forgets_ranks : bool
        Whether the shapes between the groups of nodes that it computes are lost; see `declared_types`.
    keeps_defaults : bool
        Whether it ignores what is given for an input with a default.
    mixes_nodes : bool
        Whether it computes some nodes wrongly together, as `engines.across_nodes` knows.
    loses_empty_inputs : bool
        Whether it misses an input that is declared without elements.
    copies_bound_inputs : bool
        Whether it takes a copy of host memory when that is bound, as a provider on a GPU does.
    takes_no_empty_tensors : bool
        Whether a run fails in which it gets a tensor without elements, of a fixed shape.
    spoiled_by : callable, optional
        Whether an error of a run makes later ones of the session wrong; see `engines.wrappers.renewed`.
    serial : callable, optional
        Whether it does its runs one after another with these options.
    loses_errors : bool
        Whether it loses errors of a run where it has one thread; see `lost_errors`.
    zero_packed_outputs : bool
        Whether it gives zeros for outputs of 4-bit and 2-bit types.
    breaks_memory : bool
        Whether it takes nodes that break the process's memory; see `unsafe`.
    reads_flags : bool
        Whether it reads flags that are neither 0 nor 1 as the CPU provider does.
    hands_optionals_on : bool
        Whether an optional may hold what it computes.
    leaves_text : bool
        Whether it leaves nodes that make text to the CPU provider, and what is in the branches of such an If; see `left_to_cpu`.
    deadly : mapping of str to tuple of callable
        What ends the process while it compiles a node, by operator; see `engines.deadly`.
    known_options : frozenset of str
        All its options, where it says nothing about others; empty where it refuses them itself.
    meta : str
        Device kind for which the library has a provider of its own, ``PROVIDER.KIND``; empty for none.
    inside : Limits, optional
        Of the engine that computes inside it.
    defects : Table
        The forms of nodes that it computes wrongly; ONNX Runtime's CPU provider has its own.
    narrows : bool
        Whether it computes wide integers in int32, and float64 in float32.
    rules : tuple of callable
        What writes its wrong forms in others, and is of no use elsewhere.
    wrong_when_empty, wrong_in_empty_runs : frozenset of str
        See `Target`.
    values_lost : mapping
        Operators that may lose NaN; see `Target.values_lost`.
    """

    family: DeviceFamily = devices.ANY
    cure: str = "Check the provider's name, or install a wheel or plugin that has it"
    needs: str = ""
    nvidia_library: str = ""
    on_cuda: bool = False
    device_option: str = ""
    device_by_index: bool = False
    slow_builds: bool = False
    least_nodes: int = 1
    miscounts_inputs: bool = False
    drops_cast_pairs: bool = False
    mixes_reductions: bool = False
    joins_lone_nodes: bool = False
    forgets_ranks: bool = False
    keeps_defaults: bool = False
    mixes_nodes: bool = False
    loses_empty_inputs: bool = False
    copies_bound_inputs: bool = False
    takes_no_empty_tensors: bool = False
    spoiled_by: Callable[[Exception], bool] | None = None
    serial: Callable[[Mapping[str, str]], bool] | None = None
    loses_errors: bool = False
    zero_packed_outputs: bool = False
    breaks_memory: bool = False
    reads_flags: bool = True
    hands_optionals_on: bool = True
    leaves_text: bool = False
    deadly: Mapping[str, tuple[Deadly, ...]] = field(default_factory=dict)
    known_options: frozenset[str] = frozenset()
    meta: str = ""
    inside: Limits | None = None
    defects: Table = defects.NONE
    narrows: bool = False
    rules: tuple[Rule, ...] = ()
    wrong_when_empty: frozenset[str] = frozenset()
    wrong_in_empty_runs: frozenset[str] = frozenset()
    values_lost: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def mends_models(self) -> bool:
        """Whether it gets something wrong of whole models, as `around_openvino` knows."""
        mixes = self.mixes_reductions or self.mixes_nodes
        return mixes or self.miscounts_inputs or self.drops_cast_pairs or self.joins_lone_nodes


#: Of the providers in ONNX Runtime's wheels.
_BUILT_IN: Mapping[str, Record] = {
    CPU: Record(family=devices.CPU),
    TENSORRT: Record(
        family=devices.CUDA,
        cure=f"{runtime.install_instead(GPU_WHEEL)}; and install TensorRT 10 from NVIDIA",
        nvidia_library="tensorrt",
        on_cuda=True,
        device_option="device_id",
        device_by_index=True,
        slow_builds=True,
    ),
}

#: Of plugins.
_PLUGINS: Mapping[str, Record] = {
    "NvTensorRTRTXExecutionProvider": Record(
        needs="an NVIDIA RTX GPU",
        on_cuda=True,
        cure="Install onnxruntime-ep-nv-tensorrt-rtx on a host with an NVIDIA RTX GPU",
    ),
}

_UNKNOWN = Record()


def record(provider: str, *, plugin: bool | None = None) -> Record:
    """What is known of a provider.

    Parameters
    ----------
    plugin : bool, optional
        Whether it comes as a plugin. By default where the wheel lacks it and a plugin of that name is known.
    """
    base = plugins.provider_without_meta(provider)
    if base == OPENVINO:  # in a wheel, and as a plugin
        from onnx_multi_backend.engines.ort.openvino_ep import records as openvino_records

        if plugin is None:
            plugin = runtime.why_missing() is None and not plugins.built_in(base)
        return openvino_records.PLUGIN if plugin else openvino_records.BUILT_IN
    if base == CUDA and not plugin:
        from onnx_multi_backend.engines.ort.cuda import records as cuda_records

        return cuda_records.BUILT_IN
    if plugin is None:
        plugin = base not in _BUILT_IN
    return (_PLUGINS if plugin else _BUILT_IN).get(base, _UNKNOWN)
