# SPDX-License-Identifier: Apache-2.0
"""What `backend_test.differential`, `backend_test.fuzz` and `backend_test.soak` share.

graphs/        random graphs, drawn from one `random.Random`
mutations/     changes of valid models
isolation.py   tasks in worker processes with limits of time and memory; a crash costs one task
sparing.py     what is paid once, and not for each model
engines.py     the bare engines, the references and a preset, each with one answer
evaluator.py   where ONNX's evaluator is known to be wrong, kernels.py where ONNX Runtime is
judge.py       compares answers: who is right, and which category that makes
shrink.py      the smallest part of a graph that shows the same
journal.py     what is done already, one line a task
findings.py    folders with model, inputs and report, one a signature
command.py     the command line of both searches
"""
