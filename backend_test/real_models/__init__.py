# SPDX-License-Identifier: Apache-2.0
"""Models that others made, on our presets beside the plain engines: ``nox -s real_models`` writes docs/real-models.md.

make/        writes models, in an environment that has the frameworks
sources.py   which models there are, and their inputs
trial.py     one model on one preset, in a process of its own
verdict.py   what a cell says
table.py     the cells as Markdown
"""
