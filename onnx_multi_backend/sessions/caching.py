# SPDX-License-Identifier: Apache-2.0
"""Sessions of a model that a cache may hold: a hit needs neither the model's parsing nor its checking."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from onnx_multi_backend import option_words
from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.cache.fingerprint import Fingerprint, fingerprint_bytes, fingerprint_files, hash_model
from onnx_multi_backend.cache.key import make_key
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.engines.session import Built, Caching, RefusedError, Session
from onnx_multi_backend.engines.special_values import inputs as special_inputs
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.engines.wrappers import coded
from onnx_multi_backend.engines.wrappers.bounded import bounded
from onnx_multi_backend.engines.wrappers.renewed import renewed
from onnx_multi_backend.errors import CacheWarning, InvalidModelError
from onnx_multi_backend.models.given import Given, label_of
from onnx_multi_backend.models.origin import Origin
from onnx_multi_backend.sessions import signature
from onnx_multi_backend.sessions.known_inputs import NO_VALUES, Shapes, Values
from onnx_multi_backend.sessions.maker import SessionMaker
from onnx_multi_backend.sessions.signature import Signature
from onnx_multi_backend.user_warnings import warn


class CachingSessionMaker:
    """A `SessionMaker` that looks into a cache first, and puts there what it had to make.

    Parameters
    ----------
    model : Given
    store : Store
    load : callable
        Loads and checks the model, and makes the SessionMaker that knows no cache.
    target : Target
        What the first session is for.
    made_of : tuple
        Whatever else decides what the model becomes.
    fixed_shapes : bool
        Whether sessions are for shapes that are not known yet.

    Attributes
    ----------
    signature : Signature

    Raises
    ------
    InvalidModelError
        The model is not in the cache, and not valid.
    """

    def __init__(
        self,
        model: Given,
        store: Store,
        load: Callable[[Given], SessionMaker],
        target: Target,
        *,
        made_of: tuple[object, ...],
        fixed_shapes: bool,
    ) -> None:
        self._model = replace(model, proto=None)  # the user's own, not to be held
        self._store = store
        self._load = load
        self._for_all: tuple[object, ...] = (target.identity, *made_of)  # the model is adapted to the first target
        self._cold: SessionMaker | None = None
        self._useless: set[str] = set()
        self._told = False  # that nothing is kept
        self._fingerprint: Fingerprint | None = None
        with contextlib.suppress(OSError):  # loading it says better what is wrong with a file
            self._fingerprint = self._identify(model)
        self._first: tuple[Target, Built] | None = None
        self.signature: Signature
        found = None if fixed_shapes else self._find(target, None)
        if found is not None:
            self._first, self.signature = (target, found[0]), found[1]
        else:
            if self._cold is None:
                self._cold = load(model)
            self.signature = self._cold.signature

    def __call__(self, target: Target, shapes: Shapes | None = None) -> Built:
        """A session from the cache, or else a new one; see `SessionMaker`."""
        first, self._first = self._first, None
        if first is not None and first[0] is target and shapes is None:
            return first[1]
        found = self._find(target, shapes)
        return self._make(target, shapes) if found is None else found[0]

    def for_nothing(self, target: Target, shapes: Shapes) -> Session | None:
        """See `SessionMaker`; these sessions are not kept."""
        return self._made_cold().for_nothing(target, shapes)

    def for_shapes(self, target: Target, shapes: Shapes, values: Values = NO_VALUES) -> Built:
        """See `SessionMaker`; these sessions are not kept."""
        if not self._told:
            self._told = True
            warn(
                f"{target.preset} compiles {self.signature.label} for the shapes of each run, and keeps nothing of it in the cache.",
                CacheWarning,
            )
        return self._made_cold().for_shapes(target, shapes, values)

    def deciding(self) -> frozenset[str]:
        """See `SessionMaker`."""
        return self._made_cold().deciding()

    def _made_cold(self) -> SessionMaker:
        if self._cold is None:
            self._cold = self._load_again()
        return self._cold

    @property
    def origin(self) -> Origin:
        """The model's files by their stamps; see `SessionMaker.origin`."""
        if self._cold is not None:
            return self._cold.origin
        files = self._fingerprint.files if self._fingerprint is not None else ()
        if not files:
            return Origin(self.signature.label)
        beside = tuple((file.file, file.stamp) for file in files[1:])
        return Origin(self.signature.label, files[0].file, files[0].stamp, beside)

    def _identify(self, model: Given) -> Fingerprint:
        if model.path is None:
            assert model.data is not None
            return fingerprint_bytes(model.data)
        root, on_error = self._store.root, self._store.unusable
        hashed = hash_model(model.path, root, on_error=on_error)
        if hashed.external is None:
            self._cold = self._load(model)
        external = self._cold.external_files if self._cold is not None else None
        return fingerprint_files(hashed, root, external, on_error=on_error)

    def _place(self, target: Target, shapes: Shapes | None) -> tuple[Caching, str] | None:
        """Where the session is, or is to be: how it is kept, and its key."""
        caching = target.caching() if self._fingerprint is not None else None
        if caching is None or self._fingerprint is None:
            return None
        fixed = sorted(shapes.items()) if shapes is not None else None
        return caching, make_key(self._fingerprint.text, caching.engine, caching.parts, self._for_all, fixed)

    def _find(self, target: Target, shapes: Shapes | None) -> tuple[Built, Signature] | None:
        place = self._place(target, shapes)
        if place is None:
            return None
        caching, key = place
        while (entry := self._store.read(caching.kind, key)) is not None:
            facts = entry.facts
            if "useless" in facts:
                self._useless.add(key)
                return None
            found = signature.from_json(facts["signature"], self._model.path)
            try:
                built = Built(
                    target.restore(entry, facts["session"]),
                    tuple(Adaptation(*change) for change in facts["adaptations"]),
                )
                built = bounded(built, facts["session"].get("bounds", {}), found.label)
                built = special_inputs.restored(built, facts["session"].get("special_inputs"), found.label)
                built = coded.restored(built, facts["session"].get("strings"))
                built = renewed(built, lambda: self._made_cold().plain(target, shapes))
            except RefusedError as error:
                if not entry.still_there():  # another process took it away while the engine read it
                    continue
                warn(
                    f"{caching.engine} does not read what it wrote of {entry.about['model']} into the cache: {error.words}. "
                    "The model is prepared without the cache from now on.",
                    CacheWarning,
                )
                self._store.remove(entry)
                self._useless.add(key)
                return None
            return built, found
        return None

    def _make(self, target: Target, shapes: Shapes | None) -> Built:
        cold = self._cold
        if cold is None:
            cold = self._cold = self._load_again()
        place = self._place(target, shapes)
        if place is None:
            return cold(target, shapes)
        caching, key = place
        about = {"preset": target.preset, "engine": caching.engine, "model": cold.signature.label}
        with self._store.draft(caching.kind, key) as draft:
            if key in self._useless:
                draft.keep({"useless": True}, about)
                return cold(target, shapes)
            built = cold(target, shapes, keep_in=draft.folder)
            assert self._fingerprint is not None
            if built.facts is not None and self._fingerprint.still_holds():  # else it is of another model by now
                if why := built.facts.get("useless"):
                    draft.keep({"useless": True}, {**about, "unkept": why})
                    warn(
                        f"{target.preset}: {cold.signature.label} is not kept in the cache: {why}. "
                        f"{option_words.given('cache_dir', False)} avoids this warning.",
                        CacheWarning,
                    )
                    return built
                facts = {
                    "signature": signature.to_json(cold.signature),
                    "adaptations": built.adaptations,
                    "session": built.facts,
                }
                draft.keep(facts, about)
        return built

    def _load_again(self) -> SessionMaker:
        cold = self._load(self._model)
        if self._fingerprint is None or not self._fingerprint.still_holds():
            raise InvalidModelError(
                f"{label_of(self._model.path, '')} was changed or removed after it was prepared. Prepare it again; to be safe "
                "from that, give the model as bytes."
            )
        return cold
