# SPDX-License-Identifier: Apache-2.0
"""Rule: StringNormalizer on a host that lacks the locale it asks for."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: Languages whose letters change case in a way of their own. Source: Unicode's SpecialCasing.txt.
_OWN_CASE = ("tr", "az", "lt")
_NEUTRAL = "C.UTF-8"


def string_locale(site: Site) -> Iterator[ModelProto]:
    """Change case by Unicode's own table, which every locale shares but for a few languages."""
    locale = str(site.attribute("locale", "en_US"))
    if not site.is_("StringNormalizer") or locale == _NEUTRAL or locale[:2] in _OWN_CASE:
        return
    body = Body(site)
    yield body.finish(body("StringNormalizer", site.input(0), locale=_NEUTRAL, **site.attributes("locale")))
