# SPDX-License-Identifier: Apache-2.0
"""The proof on other processors than the host's, which qemu-user emulates.

``python -m backend_test.processors`` runs it; ``nox -s processors`` all of it, ``nox -s emulated`` what takes minutes.

- `emulation`: which processors, and how a Python is started on one
- `rewritten`: what the host's engine had the cases rewritten into, made beforehand
- `within`: what runs there, in a process that is emulated itself
- `__main__`: starts these, two at a time, and joins their reports
"""
