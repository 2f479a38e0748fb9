# SPDX-License-Identifier: Apache-2.0
"""A prepared model: inputs in, named outputs out."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from onnx.backend.base import BackendRep

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Session, Value
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import InputError, OptionError
from onnx_multi_backend.models.tensors import TensorInfo
from onnx_multi_backend.running.feeds import FeedMaker
from onnx_multi_backend.running.recipe import Recipe, prepare_again
from onnx_multi_backend.running.results import Results
from onnx_multi_backend.running.run_options import joined
from onnx_multi_backend.sessions.maker import Maker
from onnx_multi_backend.sessions.of_model import SessionsOfModel
from onnx_multi_backend.sessions.signature import ModelMetadata

if TYPE_CHECKING:
    from onnx_multi_backend.running.bound import BoundRun
    from onnx_multi_backend.running.verifying import Unchanged


class PreparedModel(BackendRep):
    """What `prepare` returns. Safe from several threads; results belong to the caller.

    What the engine holds is freed with the last reference to the model, by `close`, or at the end of a ``with`` block.

    Attributes
    ----------
    preset : str
        Name of the preset.
    device : str or None
        None where the execution provider has no devices to choose from.
    provider : str
        The execution provider that was asked for, as `NodePlacement` names it.
    adaptations : tuple of Adaptation
        What was changed in the model before the engine got it.
    """

    def __init__(
        self,
        preset: str,
        target: Target,
        make: Maker,
        recipe: Recipe,
        *,
        fixed_shapes: bool,
        input_example: Any,
        verify: bool = False,
    ) -> None:
        self.preset = preset
        self.device = recipe.device
        self.provider = target.requested[0]
        self._recipe = recipe
        signature = make.signature
        self._inputs, self._outputs = signature.inputs, signature.outputs
        self._signature, self._label = signature, signature.label
        self._results = Results(signature)
        self._narrows, self._make_outputs = self._results.narrows, self._results.named
        self._check: Unchanged | None = None
        self._feeds = self._feed_maker(target)
        self._bound: weakref.WeakSet[BoundRun] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._sessions = SessionsOfModel(preset, make, target, adapts=bool(recipe.options.get("adapt", True)))
        example = None if input_example is None else functools.partial(self._feeds, input_example)
        built = self._sessions.begin(example, fixed_shapes=fixed_shapes)
        self.adaptations: tuple[Adaptation, ...] = built.adaptations
        if verify:
            from onnx_multi_backend.running.verifying import Unchanged

            self._check = Unchanged(make.origin)
            self._feeds = self._feed_maker(target)
        if self._sessions.compiles_in_runs and input_example is not None:
            self.run(input_example)  # lets the engine plan its memory and choose its kernels now

    @property
    def _session(self) -> Session:
        return self._sessions.session

    def _feed_maker(self, target: Target) -> FeedMaker:
        if self._check is None:
            return FeedMaker(self._signature, target.from_device)
        from onnx_multi_backend.running.verifying import VerifyingFeedMaker

        return VerifyingFeedMaker(self._signature, target.from_device, self._check)

    def run(
        self,
        inputs: Any,
        input_feed: Any = None,
        run_options: Any = None,
        *,
        output_device: str | None = None,
        **engine_run_options: Any,
    ) -> tuple[Value, ...]:
        """Run the model: ``run(inputs)``, or as ONNX Runtime's session has it, ``run(None, inputs)`` and ``run(["y"], inputs)``.

        Parameters
        ----------
        inputs : array, list, tuple or mapping
            A single array; a list or tuple in the order of `get_inputs`; or a mapping by name. Arrays of any layout,
            numpy scalars, Python numbers, and anything with ``__dlpack__`` or ``__array__``. Lists for sequences, None
            for an empty optional. On CUDA, arrays that support DLPack and lie on the GPU are read where they are. Where
            `input_feed` is given: the names of the wanted outputs, None for all.
        input_feed : array, list, tuple or mapping, optional
            The inputs, where the first argument is the outputs' names.
        run_options : mapping of str to value, or onnxruntime.RunOptions, optional
            The same as `engine_run_options`; ONNX Runtime presets use a RunOptions as it is.
        output_device : str, optional
            Where to leave the results, for example ``"CUDA:0"``: as arrays that support DLPack. The host when None.
        **engine_run_options
            ONNX Runtime's RunOptions by name, for example ``log_severity_level=0``; entries of the run configuration
            with their dotted names through ``**{"name.with.dots": "1"}``.

        Returns
        -------
        named tuple
            One value an output, by index, by name (``result["y"]``) and, for names that are identifiers, by attribute.
            The caller owns the arrays.

        Raises
        ------
        InputError
            The inputs do not fit the model.
        OptionError
            The model has no such output, or the engine no such option of a run.
        DeviceError
            Results cannot be left on `output_device`.
        RunError
            The engine failed.
        """
        names, options = None, engine_run_options
        if input_feed is not None:
            names, inputs = inputs, input_feed
        if run_options is not None:
            options = joined(run_options, engine_run_options, self._sessions.target)
        feeds = self._feeds(inputs)
        session = self._sessions.only or self._sessions.for_feeds(feeds)
        if output_device is None:
            results = session.run(feeds, options or None)
        else:
            results = session.run_to_device(feeds, options or None, output_device)
        if self._narrows:
            results = self._results.narrowed(results)
        made = self._make_outputs(results)
        return made if names is None else self._results.selected(names, made)

    def bind(self, inputs: Any, outputs: Any = None, *, output_device: str | None = None) -> BoundRun:
        """Bind the model to fixed buffers: the fastest way to run it again and again.

        Parameters
        ----------
        inputs : array, list, tuple or mapping
            As for `run`. A C-contiguous, writeable array of the declared dtype becomes the buffer itself, and so does
            an array on the device; anything else is copied into a buffer once.
        outputs : array, list, tuple or mapping, optional
            Arrays to write the results to, in the order of `get_outputs` (None for those to make) or by name. On CUDA also arrays that
            support DLPack and lie on the GPU.
        output_device : str, optional
            Where the buffers of the other outputs lie; when None, where those of `outputs` do, or the host.

        Returns
        -------
        BoundRun
            Its `run` reads ``inputs`` and overwrites ``outputs``. The shapes are those of the first run, which is done
            here; where an output's shape depends on the data, another shape is a RunError.

        Raises
        ------
        InputError, DeviceError, RunError
            As `run`.
        UnsupportedModelError
            An input or output is not a tensor of numbers.
        """
        from onnx_multi_backend.running.binding import bind, output_buffers

        feeds = self._feeds(inputs)
        given, device = output_buffers(outputs, self._signature, self._sessions.target.from_device)
        output_device = output_device or device
        session = self._sessions.only or self._sessions.for_feeds(feeds)
        made = session.run(feeds, None) if output_device is None else session.run_to_device(feeds, None, output_device)
        binder: Any = session
        if self._check is not None:
            from onnx_multi_backend.running.verifying import VerifyingBinder

            binder = VerifyingBinder(session, self._check)
        binder = self._sessions.binder(binder, feeds)
        bound = bind(binder, self._signature, self._feeds.by_engine_name, feeds, given, made, self._make_outputs)
        with self._lock:
            self._bound.add(bound)
            closed = self._sessions.closed
        if closed:  # meanwhile, by another thread
            self.close()
        return bound

    def run_many(self, batches: Iterable[Any], in_flight: int | None = None) -> Iterator[tuple[Value, ...]]:
        """Run the model on one batch after another, several at once, and yield the results in order.

        Parameters
        ----------
        batches : iterable
            Inputs as for `run`. It is read as the results are taken, at most `in_flight` ahead: leave the arrays of a batch
            alone until its result is there.
        in_flight : int, optional
            How many batches are under way at once, at most; what the engine recommends when None.

        Yields
        ------
        named tuple
            As `run` returns.

        Notes
        -----
        The first batches run one after another. Where each takes more than 0.2 ms, the model is compiled a second
        time, tuned for throughput, and the rest runs on that, several at once; a single `run` keeps its latency. Shorter runs go
        on as in a loop.

        That second session has other numbers of threads. On them engines may add in another order, so that floats differ in
        their last bits from those of `run`, and more where a rounding follows, as in dynamically quantized (int8) models.
        """
        from onnx_multi_backend.running.streaming import stream

        if in_flight is not None and (isinstance(in_flight, bool) or not isinstance(in_flight, int) or in_flight < 1):
            raise OptionError(f"in_flight is a number of batches, at least 1; {in_flight!r} was given.")
        try:
            source = iter(batches)
        except TypeError as error:
            raise InputError(
                f"{self._label}: run_many takes an iterable of batches, {type(batches).__name__} given. Pass a list or a generator."
            ) from error
        return stream(self.run, source, functools.partial(self._streaming, in_flight))

    def _streaming(self, in_flight: int | None) -> tuple[Callable[[Any], Any], int]:
        """What runs a batch beside others, and how many at once."""
        sessions = self._sessions
        if sessions.by_shape is not None:
            return self.run, in_flight or 2
        session = sessions.for_many()

        def run(inputs: Any) -> Any:
            if self._sessions.closed:
                return self.run(inputs)  # which says so
            feeds = self._feeds(inputs)
            results = (sessions.for_nothing(feeds) or session).run(feeds, None)
            return self._make_outputs(self._results.narrowed(results) if self._narrows else results)

        return run, in_flight or session.in_flight

    def get_inputs(self) -> list[TensorInfo]:
        """The inputs that every run needs, as the model declares them."""
        return list(self._inputs)

    def get_outputs(self) -> list[TensorInfo]:
        """The outputs, as the model declares them."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[TensorInfo]:
        """The inputs that have a default, which a run may give by name, as the model declares them."""
        return list(self._signature.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself: its producer, its description and its own entries (``custom_metadata_map``)."""
        return self._signature.metadata

    def end_profiling(self) -> str:
        """End the profile that ``session_options={"enable_profiling": True}`` began, and return the name of its file.

        Raises
        ------
        OptionError
            The model does not run on ONNX Runtime.
        """
        return self._session.end_profiling()

    def placement(self) -> tuple[NodePlacement, ...]:
        """Where each node runs; nodes that the engine folded away while it loaded the model do not appear."""
        return self._session.placement()

    def get_providers(self) -> list[str]:
        """The execution providers that the session holds, by priority, as ONNX Runtime's session has it."""
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each execution provider: what the preset and the user set, and what ONNX Runtime reports."""
        options = self._session.get_provider_options()
        for name, given in self._sessions.target.chosen_providers:
            options.setdefault(name, {}).update(given)
        return options

    def set_providers(self, names: Sequence[Any], options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Prepare the model again on other execution providers, by priority, and go on with these.

        Parameters
        ----------
        names : sequence of str, or of (str, mapping)
            As ONNX Runtime's session takes them.
        options : sequence of mapping, optional
            One mapping a provider.

        Raises
        ------
        DeviceUnavailableError
            A provider cannot be used here; the model stays as it was.
        """
        target = self._sessions.target.with_providers(names, options)
        built = self._sessions.move(target)
        with self._lock:
            self.provider, self.device = target.requested[0], target.device_text
            self.adaptations = built.adaptations
            self._feeds = self._feed_maker(target)
            self._recipe = replace(self._recipe, providers=target.chosen_providers)

    def close(self) -> None:
        """Let go of the engine's sessions. A run after that is a RunError; results of earlier runs stay valid."""
        from onnx_multi_backend.running.closed import Closed

        with self._lock:
            closed = Closed(self.preset, self._sessions.make)
            self._sessions.close(closed)
            for bound in self._bound:
                bound.close(closed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(map(str, self._inputs)), ", ".join(map(str, self._outputs))
        return f"<PreparedModel {self._label} on {self.preset} {self.device}: ({inputs}) -> ({outputs})>"

    def __reduce__(self) -> tuple[Any, ...]:
        self._recipe.check_pickled(f"{self._label} on {self.preset}")
        return prepare_again, (self._recipe,)
