# SPDX-License-Identifier: Apache-2.0
"""Exports models of scikit-learn and PyTorch with what their own framework computes, for the tests to hold engines to.

``python -m backend_test.exporters FOLDER`` writes them, in an environment that has the frameworks and needs no engine
(``nox -s export`` makes one); `backend_test/unit/test_exported_models.py` reads them, in an environment with an engine.
"""
