# SPDX-License-Identifier: Apache-2.0
"""What an engine is to this package: two methods to write, and answers that may be given better."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from onnx import ModelProto, NodeProto, TypeProto

from onnx_multi_backend.adapt import Adaptation, Limits
from onnx_multi_backend.adapt.engine import Defect, Engine, answer
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.adapt.site import Rule, Site
from onnx_multi_backend.engines.session import Built, Caching, Payload, RefusedError, Session
from onnx_multi_backend.engines.simplest import why_none
from onnx_multi_backend.errors import OnnxMultiBackendError, OptionError, OptionTypeError
from onnx_multi_backend.models.loading import LoadedModel

if TYPE_CHECKING:
    from onnx_multi_backend.cache.entry import Entry

#: In `Lost`: numbers whose squares or sums may leave the type.
LARGE_NUMBERS = "large numbers"
#: By ``"NaN"``, ``"inf"`` and `LARGE_NUMBERS`, operators that may not give what ONNX has there, and what they make of it.
Lost = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Target(Engine):
    """One engine, set up for one device and one set of options; it compiles models.

    An engine has `build` to write. Every other answer is right for an engine that runs a model whole or refuses it, computes what
    it takes rightly, and keeps nothing. Subclasses are frozen dataclasses: their fields are what they are set up for.

    Attributes
    ----------
    preset : str
        The preset's name, for messages.
    """

    preset: str

    def build(self, payload: Payload) -> Built:
        """Compile a model as it is; see `compiling.compile_model`.

        Raises
        ------
        RefusedError
            The engine refuses the model.
        UnsupportedModelError
            The model's placement breaks the ``fallback`` policy.
        """
        raise NotImplementedError

    # What it takes.

    @property
    def limits(self) -> Limits:
        """The versions and types that it takes."""
        return Limits()

    @property
    def identity(self) -> Hashable:
        """Targets of one identity take the same nodes: what one has refused the other is not asked."""
        values = type(self), *(getattr(self, f.name) for f in fields(self))
        try:
            hash(values)
        except TypeError:  # a mapping or an array: each target is asked for itself
            return self._itself
        return values

    @functools.cached_property
    def _itself(self) -> object:
        return object()

    @property
    def ignores_opset(self) -> bool:
        """Whether another opset is not worth a try."""
        return True

    def accepts(self, model: ModelProto) -> str | None:
        """None when it takes a model of one node, else its complaint."""
        loaded = LoadedModel(model, None, model.SerializeToString())
        try:
            self.build(Payload(loaded, untouched(model)))
        except RefusedError as error:
            return error.words
        return None

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        """Rules for what this engine alone computes wrongly; see `onnx_multi_backend.adapt.engine.Engine`."""
        return ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules for this engine alone, which are tried after the others."""
        return ()

    def disarmed(self, payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload without what would end the process, as far as that can be written in another way."""
        return payload, ()

    def wary(self) -> Target | None:
        """The same target, which counts nodes as wrong that read constants beyond int32; None: no rule helps those."""
        return None

    def leaving_named(self) -> Target | None:
        """The same target, which leaves nodes to another provider where a refusal names them; None: there is no other."""
        return None

    def leaving(self, payload: Payload, wrong: Sequence[NodeProto]) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload with nodes of the main graph left to another provider, which this one would compute wrongly."""
        return payload, ()

    def check_options(self) -> None:
        """See that the engine compiles anything at all with its options.

        Raises
        ------
        OptionError
        """
        if (words := why_none(self)) is not None:
            raise OptionError(f"{self.preset} compiles nothing with these options: {words}. Correct them.")

    def explain(self, payload: Payload, refused: RefusedError) -> OnnxMultiBackendError:
        """Say which nodes the engine lacks, and why."""
        from onnx_multi_backend.engines.diagnosis import refusal

        return refusal(payload, refused.words, functools.partial(answer, self), limits=self.limits, who=self.preset)

    # Where it runs.

    @property
    def requested(self) -> tuple[str, ...]:
        """Providers that the user asked for, by the names that `NodePlacement` uses; the first is the main one."""
        return (self.preset,)

    def engines_to_ask(self, *, taken: bool) -> Sequence[tuple[Engine, Engine]]:
        """The ways to ask which nodes must be rewritten: whom for those of the model, and whom for those in their place.

        Parameters
        ----------
        taken : bool
            The engine took the model as it is, and runs no node of it where it was asked to.
        """
        return [(self, self)]

    def from_device(self, value: Any) -> Any:
        """Take over an array that lies on a device where this engine can read it; None for any other."""
        return None

    def check_run_options(self, given: object) -> None:
        """Refuse the options of a run that are no mapping, unless the engine has a class of its own for them.

        Raises
        ------
        OptionTypeError
        """
        raise OptionTypeError(
            f"{self.preset}: run_options is a mapping of names to values; {type(given).__name__} was given."
        )

    def for_throughput(self) -> Target:
        """The same target, tuned for many runs at once; itself where there is nothing to tune."""
        return self

    @property
    def spare(self) -> Target | None:
        """What runs a model instead, once a run fails with a `ProviderFailedError`; None where nothing may."""
        return None

    def with_providers(self, names: Sequence[Any], options: Sequence[Mapping[str, Any]] | None) -> Target:
        """The same target on other execution providers of ONNX Runtime.

        Raises
        ------
        OptionError
            The engine has none.
        """
        raise OptionError(f"{self.preset} does not run on ONNX Runtime, so it has no execution providers.")

    @property
    def chosen_providers(self) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """ONNX Runtime's execution providers with the options that were chosen for them."""
        return ()

    @property
    def device_text(self) -> str | None:
        """The device, as one writes it; None where there is no choice."""
        return None

    # What it computes wrongly.

    def may_have_defect(self, node: NodeProto, facts: Facts) -> bool:
        """Whether `find_defect` may find a defect of a node; decided from the node alone, to save its inference."""
        return type(self).find_defect is not Target.find_defect

    @property
    def defect_operators(self) -> Collection[str] | None:
        """The operators of which that may be true; None where each node has to be looked at."""
        return None

    @property
    def minor_operators(self) -> Collection[str]:
        """The operators of which `find_defect` finds nothing but minor defects."""
        return ()

    def may_have_integer_defect(self, node: NodeProto, read: list[Value]) -> bool:
        """The same, because of the integers that it reads."""
        return False

    @property
    def integer_operators(self) -> Collection[str] | None:
        """The operators of which that may be true; None where each node has to be looked at."""
        return None

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        """Why the engine computes a node wrongly, or refuses it only when it runs; None for one that it gets right."""
        return None

    def deadly(self, facts: Facts) -> list[tuple[NodeProto, str]]:
        """The nodes that end the engine's process, as far as constants tell, and why."""
        return []

    @property
    def wrong_when_empty(self) -> frozenset[str]:
        """Operators that it computes wrongly, or refuses when it runs, where a tensor has no elements; some of them end its process."""
        return frozenset()

    @property
    def dies_of_empty_constants(self) -> bool:
        """Whether its process may end while it computes something of constants without elements."""
        return False

    @property
    def leaves_empty(self) -> bool:
        """Whether it leaves nodes to another provider where a tensor is known to have no elements, whatever their operators."""
        return False

    @property
    def wrong_in_empty_runs(self) -> frozenset[str]:
        """Those of `wrong_when_empty` that it gets wrong too where only the inputs of a run tell."""
        return frozenset()

    def wants_shapes(self, refusal: str) -> bool:
        """Whether it refuses a model, in these words, for shapes that are known only at run time."""
        return False

    @property
    def narrows(self) -> bool:
        """Whether wide integers are computed in int32, and float64 in float32, by one of `requested`."""
        return False

    @property
    def values_lost(self) -> Lost:
        """Operators that may lose NaN, or what ONNX makes of inf, on one of `requested`."""
        return {}

    @property
    def exact_in_float(self) -> bool:
        """Whether it reads wide inputs in floating point where that comes to the same, whatever they hold."""
        return False

    @property
    def folds_exactly(self) -> bool:
        """Whether what is computed of constants alone is computed ahead in its own types."""
        return False

    @property
    def runs_alone(self) -> bool:
        """Whether no node can run elsewhere than on `requested`: then nobody asks where one runs."""
        return False

    @property
    def precision_policy(self) -> str:
        """``"warn"`` or ``"strict"``: what happens where they are."""
        return "warn"

    def output_type(self, model: ModelProto, name: str) -> TypeProto | None:
        """The type that the engine itself infers for an output without one; None: it cannot tell."""
        return None

    # What it keeps.

    def caching(self) -> Caching | None:
        """How its sessions are kept; None: they cannot be."""
        return None

    def restore(self, entry: Entry, facts: Mapping[str, Any]) -> Session:
        """Make a session of what an earlier one wrote.

        Raises
        ------
        RefusedError
            The engine does not take it.
        """
        raise RefusedError(f"{self.preset} keeps no sessions", lacks_kernel=False)
