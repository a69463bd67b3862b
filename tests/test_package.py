import re
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline_lab

HEAVY = (
    "tensorflow",
    "streamlit",
    "pandas",
    "plotly",
    "pyarrow",
    "numba",
    "numpy",
    "pydantic",
    "scipy.linalg",
    "scipy.stats",
)


def loaded_by(statement: str) -> set[str]:
    """Return which heavy packages a statement loads in a fresh process."""
    program = f"import sys\n{statement}\nprint(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import pipeline_lab") == set()
    assert loaded_by("from pipeline_lab import analyze, compare, explain, open_trace, race, run, tune") == set()


@pytest.mark.slow
def test_the_help_of_the_command_line_loads_nothing_heavy() -> None:
    help_of = "from pipeline_lab.cli import main\nsys.argv[1:] = {!r}\ntry: main()\nexcept SystemExit: pass"
    assert loaded_by(help_of.format(["--help"])) == set()
    assert loaded_by(help_of.format(["run", "--help"])) <= {"pydantic"}  # Typer's own doing


@pytest.mark.slow
def test_launching_needs_no_tensorflow() -> None:
    assert loaded_by("from pipeline_lab.runs.launch.launcher import launch") == {"pydantic"}


@pytest.mark.slow
def test_diagnosing_a_log_loads_only_what_reads_it() -> None:
    loaded = (
        "from pipeline_lab.runs.store import find_path\nfrom pipeline_lab.analysis.diagnosis.diagnose import diagnose"
    )
    assert loaded_by(loaded) == {"numpy", "pyarrow"}


@pytest.mark.slow
def test_reading_a_large_trace_begins_before_the_analyses_are_loaded() -> None:
    assert loaded_by("from pipeline_lab.advice.analyzing import analyze_path") == set()
    assert loaded_by("from pipeline_lab.analysis.diagnosis.reading import begun_ahead") == {"numpy"}


@pytest.mark.slow
def test_the_command_that_diagnoses_loads_no_compiler_and_no_linear_algebra(tmp_path: Path) -> None:
    arguments = ["analyze", str(Path(__file__).parent / "data" / "small_pipeline.xplane.pb"), "--json"]
    command = f"import os\nfrom pipeline_lab.cli import main\nos.environ['PIPELINE_LAB_CACHE'] = {str(tmp_path)!r}"
    run = f"sys.stdout = open(os.devnull, 'w')\nsys.argv[1:] = {arguments}\ntry: main()\nexcept SystemExit: pass"
    loaded_by(f"{command}\n{run}")  # compiles what reads traces, where no earlier process did
    assert not loaded_by(f"{command}\n{run}") & {"numba", "scipy.linalg", "scipy.stats"}


@pytest.mark.slow
def test_the_help_of_all_commands_loads_none_of_what_they_do() -> None:
    done = (
        "import sys\nfrom pipeline_lab.cli import main\nsys.argv[1:] = ['--help']\ntry: main()\nexcept SystemExit: pass"
    )
    rooms = "print([name for name in sys.modules if name.startswith('pipeline_lab.runs') or name in ('psutil', 'typer', 'rich')], file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", f"{done}\n{rooms}"], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"


@pytest.mark.slow
def test_a_sample_is_shown_without_its_tables_and_the_models_of_its_options() -> None:
    sample = Path(__file__).parents[1] / "profiles" / "samples" / "sample-baseline"
    show = f"sys.stdout = open(os.devnull, 'w')\nsys.argv[1:] = ['analyze', {str(sample)!r}]"
    loaded = loaded_by(f"import os\nfrom pipeline_lab.cli import main\n{show}\ntry: main()\nexcept SystemExit: pass")
    assert loaded <= {"pydantic"}  # Typer's own doing


def test_every_public_name_is_there() -> None:
    for name in pipeline_lab.__all__:
        assert callable(getattr(pipeline_lab, name))
    assert set(pipeline_lab.__all__) <= set(dir(pipeline_lab))


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d\S*)$", changelog, re.MULTILINE)[0] == pipeline_lab.__version__


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipeline_lab.nothing


def test_a_path_may_be_text() -> None:
    trace = Path(__file__).parent / "data" / "small_pipeline.xplane.pb"
    assert pipeline_lab.analyze(str(trace)).verdict == pipeline_lab.analyze(trace).verdict
    assert pipeline_lab.open_trace(str(trace)).event_count == pipeline_lab.open_trace(trace).event_count > 0


@pytest.mark.slow
def test_documents_that_the_project_cites_are_part_of_it() -> None:
    top = Path(__file__).resolve().parents[1]
    listed = subprocess.run(["git", "ls-files"], cwd=top, capture_output=True, text=True, check=True).stdout.split()
    names = {Path(name).stem for name in listed}
    for name in listed:
        if name.endswith((".py", ".toml", ".md")):
            cited = re.findall(r"\b([A-Z]{4,}(?:_[A-Z]+)*)\.md\b", (top / name).read_text(encoding="utf-8"))
            assert set(cited) <= names, name
    comments = re.findall(r"#.*", (top / "pyproject.toml").read_text(encoding="utf-8"))
    assert {word for comment in comments for word in re.findall(r"\b[A-Z]{8,}\b", comment)} <= names
