# SPDX-License-Identifier: Apache-2.0
"""OpenVINO without ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onnx_multi_backend import option_words
from onnx_multi_backend.cache.folder import resolve
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device, Problem, similar
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.presets import precision
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.presets.contradiction import Unasked, refuse
from onnx_multi_backend.presets.options import COMMON, Option, anything, one_of
from onnx_multi_backend.presets.properties import check_property, word

if TYPE_CHECKING:
    from onnx_multi_backend.presets.knobs import Host, Knob


class OpenvinoBackend(Preset):
    """OpenVINO, computing float32 in float32 unless asked.

    OpenVINO's own default on a CPU with BF16 is bfloat16: ``precision="bf16"`` asks for it, and ``precision="default"``
    for whatever OpenVINO would choose. Further keyword arguments are OpenVINO's properties, for example
    ``INFERENCE_NUM_THREADS=2``.
    """

    name = "Openvino"
    family = devices.OPENVINO
    options = (
        Option("input_example", anything, doc="one example of the inputs, in any of the three forms"),
        precision.OPTION,
        precision.POLICY,
        Option(
            "performance_hint",
            one_of("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT", "UNDEFINED"),
            Unasked("LATENCY"),
            "what to tune for",
            positional=False,
        ),
    )
    takes_engine_options = True

    @classmethod
    def _check_engine_option(cls, name: str, value: Any) -> Any:
        """OpenVINO's properties are in capitals; the device checks the value."""
        if not name.isupper():
            own = [o.name for o in cls.options]
            names = ["device", *own, *(o.name for o in COMMON if o.name not in own)]
            known, meant = ", ".join(names), similar(name, names)
            raise OptionError(
                f"{cls.name} has no option {name!r}.{meant} Its options are {known}, and OpenVINO's properties in capitals, "
                "such as INFERENCE_NUM_THREADS, NUM_STREAMS or ENABLE_CPU_PINNING."
            )
        return check_property(cls.name, name, value)

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        cls._hint(settings)
        wanted, named = settings["performance_hint"], settings.get("PERFORMANCE_HINT")
        if named is not None and not isinstance(wanted, Unasked) and word(named) != wanted:
            raise refuse(
                cls.name,
                option_words.given("performance_hint", wanted),
                option_words.given("PERFORMANCE_HINT", named),
            )
        if settings["cache_dir"] is False and settings.get("CACHE_DIR"):
            raise refuse(
                cls.name,
                option_words.given("cache_dir", False),
                option_words.given("CACHE_DIR", settings["CACHE_DIR"]),
            )

    @classmethod
    def _hint(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        given = [settings[precision.HINT]] if precision.HINT in settings else []
        return precision.hint(
            cls.name, settings, [(option_words.given(precision.HINT, value), word(value)) for value in given]
        )

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OpenvinoTarget:
        tuned_for = str(settings["performance_hint"])
        properties = {
            **precision.on_device(cls._hint(settings), device.kind),
            **({} if tuned_for == "UNDEFINED" else {"PERFORMANCE_HINT": tuned_for}),  # which OpenVINO has no word for
            **{name: value for name, value in settings.items() if name.isupper()},
        }
        folder = resolve(settings["cache_dir"], slow_builds=False)
        # What it keeps of the CPU itself may not come back as it was, and AUTO may choose the CPU; see `exports`.
        if folder is not None and device.kind in ("GPU", "NPU") and loaded is not None:
            own = cls._kept_by_engine(folder, "openvino", loaded, device.text, sorted(properties.items()))
            if own is not None:
                properties.setdefault("CACHE_DIR", str(own))
        return OpenvinoTarget(cls.name, device, properties, precision_policy=settings["precision_policy"])

    @classmethod
    def _needs_fixed_shapes(cls, device: Device) -> bool:
        return cls.fixed_shapes or device.kind == "NPU"

    @classmethod
    def why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        return runtime.why_unusable(device)

    @classmethod
    def usable_devices(cls) -> tuple[str, ...]:
        return runtime.usable_devices()

    @classmethod
    def engine_version(cls) -> str:
        return runtime.describe()

    @classmethod
    def knobs(cls, host: Host) -> tuple[Knob, ...]:
        from onnx_multi_backend.presets.openvino_knobs import precision_knob, property_knobs

        return (precision_knob(host), *property_knobs(host))
