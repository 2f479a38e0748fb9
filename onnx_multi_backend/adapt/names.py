# SPDX-License-Identifier: Apache-2.0
"""Names of nodes that rules write, where a name says what the node is for."""

from __future__ import annotations

#: Begins the names of nodes that only convert types.
CAST = "omb_cast"

#: The name of a node that a rule wrote for the very form that the engine computes wrongly, and guarded against it.
GUARDED = "omb_guarded"

#: In the names of nodes that are written so that an execution provider leaves them to another one.
LEFT = "omb_left"

#: The name of a node that the engine's own kernel computes, or nothing: no rule writes it in another way.
KERNEL = "omb_kernel"
