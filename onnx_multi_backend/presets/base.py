# SPDX-License-Identifier: Apache-2.0
"""The `onnx.backend.base.Backend` class that every preset shares."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from onnx import NodeProto
from onnx.backend.base import Backend

from onnx_multi_backend import option_words
from onnx_multi_backend.cache.folder import resolve
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import (
    DeviceUnavailableError,
    FallbackWarning,
    InvalidModelError,
    OnnxMultiBackendError,
    OpenShapesError,
    OptionError,
    PrecisionWarning,
)
from onnx_multi_backend.host.devices import Device, DeviceFamily, Problem
from onnx_multi_backend.models.checks import checked
from onnx_multi_backend.models.given import Given, ModelLike, given
from onnx_multi_backend.models.loading import LoadedModel, load
from onnx_multi_backend.presets.options import COMMON, Check, Option, settle
from onnx_multi_backend.presets.signature import named, signature_of
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.running.recipe import Recipe
from onnx_multi_backend.sessions.maker import SessionMaker

if TYPE_CHECKING:
    from onnx_multi_backend.presets.answers import Availability, Compatibility
    from onnx_multi_backend.presets.knobs import Host, Knob
    from onnx_multi_backend.presets.node_types import OutputsInfo
    from onnx_multi_backend.sessions.caching import CachingSessionMaker


class Preset(Backend):
    """One way to run an ONNX model. A subclass declares; the machinery is here.

    Calling a preset prepares a model: ``OrtCpuBackend("model.onnx", 2)`` is ``OrtCpuBackend.prepare("model.onnx",
    inter_op_num_threads=2)``.

    Attributes
    ----------
    name : str
        The preset's name in reports and on the command line.
    family : DeviceFamily
        The device strings that it understands.
    options : tuple of Option
        Its own options in positional order; `device`, `family_options` and `COMMON` come on top.
    family_options : tuple of Option
        Options that all presets on the same engine have.
    bound : mapping of str to value
        Options that a subclass settles once and for all.
    fixed_shapes : bool
        The engine compiles for fixed shapes, so each new shape makes a new session.
    computes_float32 : bool
        Whether it computes float32 in float32 unless it is told otherwise.
    takes_engine_options : bool
        Further keyword arguments are the engine's own options.
    """

    name: ClassVar[str]
    family: ClassVar[DeviceFamily]
    options: ClassVar[tuple[Option, ...]] = ()
    family_options: ClassVar[tuple[Option, ...]] = ()
    bound: ClassVar[Mapping[str, Any]] = {}
    fixed_shapes: ClassVar[bool] = False
    computes_float32: ClassVar[bool] = True

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = [o for o in cls.options if o.name not in cls.bound]
        names = {*cls.bound, *(o.name for o in own)}
        common = [o for o in (*cls.family_options, *COMMON) if o.name not in names]
        cls.__signature__ = signature_of(own, common, others=cls.takes_engine_options)

    def __new__(cls, *args: Any, **kwargs: Any) -> PreparedModel:  # type: ignore[misc]
        return cls.prepare(**named(cls.__name__, cls.__signature__, args, kwargs))

    # What a family of presets fills in.

    takes_engine_options: ClassVar[bool] = False

    @classmethod
    def _check_engine_option(cls, name: str, value: Any) -> Any:
        """Check an option that is not listed; only asked where `takes_engine_options`."""
        raise NotImplementedError

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> Target:
        """The engine set up for these settings; `loaded` is None where no model is at hand."""
        raise NotImplementedError

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Checks that need the engine or several options at once; raises OptionError."""

    @classmethod
    def _handed_over(cls, settings: Mapping[str, Any], loaded: LoadedModel) -> LoadedModel:
        """The model that the engine gets, where options are to be written into it."""
        return loaded

    @classmethod
    def _parse_device(cls, device: str | None, settings: Mapping[str, Any]) -> Device:
        """Read a device string; raises DeviceError."""
        return cls.family.parse(device, cls.name)

    @classmethod
    def _needs_fixed_shapes(cls, device: Device) -> bool:
        """Whether the engine compiles for fixed shapes on this device."""
        return cls.fixed_shapes

    @classmethod
    def why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        """None when the preset can run on the device here, else the cause and the cure; imports no engine if it can."""
        raise NotImplementedError

    @classmethod
    def usable_devices(cls) -> tuple[str, ...]:
        """The devices of this host that it can run on, the default first."""
        return (cls.family.default,)

    @classmethod
    def engine_version(cls) -> str:
        """The engine's package and version, without importing it."""
        raise NotImplementedError

    @classmethod
    def _kept_by_engine(cls, root: Path, kind: str, loaded: LoadedModel, *parts: object) -> Path | None:
        """A folder in which an engine keeps what it compiled, by itself; None where it cannot be had."""
        from onnx_multi_backend.cache.key import make_key
        from onnx_multi_backend.cache.of_model import fingerprint_model
        from onnx_multi_backend.cache.store import Store

        store = Store.at(root)
        engine = cls.engine_version()
        key = make_key(fingerprint_model(loaded, store).text, engine, cls.name, *parts)
        return store.engine_folder(kind, key, {"preset": cls.name, "engine": engine, "model": loaded.label})

    @classmethod
    def knobs(cls, host: Host) -> tuple[Knob, ...]:
        """What a search for the fastest setup may try; by default each own option that lists its values."""
        from onnx_multi_backend.presets.knobs import listed

        return tuple(listed(cls.options))

    # The protocol of onnx.backend.base.

    @classmethod
    def prepare(cls, model: ModelLike, device: str | None = None, **options: Any) -> PreparedModel:
        """Prepare a model for many runs.

        Parameters
        ----------
        model : path, bytes, onnx.ModelProto or QuantizedModel
        device : str, optional
            The preset's default when None.
        **options
            The preset's own options and ``input_example``, ``input_shapes``, ``adapt``, ``fallback``, ``cache_dir``,
            ``isolate``, ``time_limit``, ``verify_weights``.

        Raises
        ------
        InvalidModelError
            The model is not valid.
        UnsupportedModelError
            The preset cannot run the model, or ``fallback`` forbids how it would.
        DeviceError, DeviceUnavailableError
            The device string is wrong; or the device cannot be used here, with the cause and the cure.
        OptionError
            An option is unknown, missing or wrong.
        EngineNotInstalledError
        EngineCrashedError
            With ``isolate=True``: the engine ended its process.
        """
        parsed, settings = cls._settle(device, options)
        if not settings["isolate"]:  # else the other process looks
            cls._require(parsed, settings)
        seen = given(model)
        recipe = Recipe(
            cls.prepare, seen.source, parsed.text or None, {k: v for k, v in options.items() if k in settings}
        )
        if settings["isolate"]:
            from onnx_multi_backend.isolation.model import IsolatedModel

            return IsolatedModel(cls.name, recipe, settings["time_limit"])
        if settings["time_limit"] is not None:
            raise OptionError(
                f"{cls.name}: time_limit needs {option_words.given('isolate', True)}: only another process can be stopped."
            )
        fixed_shapes = cls._needs_fixed_shapes(parsed)

        def cold(model: Given) -> tuple[Target, SessionMaker]:
            try:
                loaded = cls._handed_over(settings, checked(load(model), adapts=settings["adapt"]))
                target = cls.make_target(settings, parsed, loaded)
                make = SessionMaker(
                    loaded,
                    target.limits,
                    adapts=settings["adapt"],
                    fixed_shapes=fixed_shapes,
                    input_shapes=settings["input_shapes"],
                )
            except UnicodeDecodeError as error:  # protobuf reads a name only when it is asked for
                raise _not_utf8(error) from error
            return target, make

        make: SessionMaker | CachingSessionMaker
        folder = resolve(settings["cache_dir"], slow_builds=False)
        kept = cls._kept_target(settings, parsed) if folder is not None else None
        if folder is not None and kept is not None:
            from onnx_multi_backend.cache.store import Store
            from onnx_multi_backend.sessions.caching import CachingSessionMaker

            target, store = kept, Store.at(folder)
            made_of = settings["adapt"], sorted(settings["input_shapes"].items())
            make = CachingSessionMaker(
                seen, store, lambda m: cold(m)[1], target, made_of=made_of, fixed_shapes=fixed_shapes
            )
        else:
            target, make = cold(seen)
        del seen  # it may hold the user's ModelProto
        try:
            return PreparedModel(
                cls.name,
                target,
                make,
                recipe,
                fixed_shapes=fixed_shapes,
                input_example=settings["input_example"],
                verify=settings["verify_weights"],
            )
        except UnicodeDecodeError as error:
            raise _not_utf8(error) from error

    @classmethod
    def _kept_target(cls, settings: Mapping[str, Any], device: Device) -> Target | None:
        """The engine set up for these settings, if its sessions can be kept in a cache."""
        target = cls.make_target(settings, device, None)
        return target if target.caching() is not None else None

    @classmethod
    def compatibility(cls, model: ModelLike, device: str | None = None, **options: Any) -> Compatibility:
        """Tell whether the preset can run a model and, where not, why. Never raises on a broken model."""
        from onnx_multi_backend.presets.answers import Compatibility

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FallbackWarning)
                warnings.simplefilter("ignore", PrecisionWarning)
                prepared = cls.prepare(model, device, **options)
        except OnnxMultiBackendError as error:
            return Compatibility(False, tuple(getattr(error, "reasons", None) or (str(error),)))
        return Compatibility(True, (), prepared.adaptations, prepared.placement())

    @classmethod
    def is_compatible(cls, model: ModelLike, device: str | None = None, **options: Any) -> bool:
        """The truth value of `compatibility`."""
        return bool(cls.compatibility(model, device, **options))

    @classmethod
    def run_model(cls, model: ModelLike, inputs: Any, device: str | None = None, **options: Any) -> tuple[Any, ...]:
        """Prepare a model and run it once."""
        try:
            prepared = cls.prepare(model, device, **options)
        except OpenShapesError:
            prepared = cls.prepare(model, device, **{**options, "input_example": inputs})
        return prepared.run(inputs)

    @classmethod
    def run_node(  # type: ignore[override]  # the protocol types **kwargs as mappings
        cls,
        node: NodeProto,
        inputs: Any,
        device: str | None = None,
        outputs_info: OutputsInfo | None = None,
        opset_version: int | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Run one operator.

        Parameters
        ----------
        node : onnx.NodeProto
        inputs : array, sequence or mapping
            The node's inputs in its order, omitted optional ones left out or None; or by name.
        outputs_info : sequence of (dtype, shape), optional
            Types of the outputs, where they cannot be inferred: a dtype of numpy's or a number of ``onnx.TensorProto``'s; a shape is None
            where nothing is known of it.
        opset_version : int, optional
            Of the node's domain. The newest that onnx and the engine both know when None.
        """
        parsed, settings = cls._settle(device, options)
        cls._require(parsed, settings)
        target = cls.make_target(settings, parsed, None)
        from onnx_multi_backend.presets import node_model

        model, feeds = node_model.build(node, inputs, outputs_info, opset_version, target)
        return cls.prepare(model, device, **options).run(feeds)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the preset can run on a device here and now. Never raises."""
        written = cls.family.written(device)
        if written is None:
            return False
        try:
            return cls.why_unusable(Device(written), dict(cls.bound)) is None
        except OnnxMultiBackendError:
            return False

    @classmethod
    def availability(cls) -> Availability:
        """Whether the preset can be used here, on which devices, and if not why."""
        from onnx_multi_backend.presets.answers import Availability

        problem = cls.why_unusable(Device(cls.family.default), dict(cls.bound))
        devices = cls.usable_devices() if problem is None else ()
        if problem is None:
            return Availability(True, devices, cls.engine_version())
        return Availability(False, (), cls.engine_version(), problem.reason, problem.cure)

    @classmethod
    def _settle(cls, device: str | None, options: Mapping[str, Any]) -> tuple[Device, dict[str, Any]]:
        names = {o.name for o in cls.options}
        known = [*cls.options, *(o for o in (*cls.family_options, *COMMON) if o.name not in names)]
        others: Check | None = cls._check_engine_option if cls.takes_engine_options else None
        settings = settle({**options, **cls.bound}, known, preset=cls.name, others=others)
        cls._check_settings(settings)
        return cls._parse_device(device, settings), settings

    @classmethod
    def _require(cls, device: Device, settings: Mapping[str, Any]) -> None:
        problem = cls.why_unusable(device, settings)
        if problem is not None:
            raise DeviceUnavailableError(f"{cls.name} cannot run on {device.text or 'this host'}: {problem}")


def _not_utf8(error: UnicodeDecodeError) -> InvalidModelError:
    return InvalidModelError(
        f"The model has a name or text that is not UTF-8 ({error}): it is damaged. Export or download it again."
    )
