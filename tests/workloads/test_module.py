import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.run_options import RunOptions, own_options, read_options, set_options, with_preset
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.workloads.module import ModuleWorkload, parse_arguments

OPTIONS = own_options("package.module:make", "/home/me/it's", "fast")


def _arguments(options: RunOptions) -> dict[str, object]:
    assert isinstance(options.workload, ModuleWorkload)
    return dict(options.workload.arguments)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", {}),
        ("batch=64, shuffle=false, name=a", {"batch": 64, "shuffle": False, "name": "a"}),
        ('rate = 1e-3 , text="a, b=c"', {"rate": 1e-3, "text": "a, b=c"}),
        ({"seed": None}, {"seed": None}),
    ],
)
def test_arguments_are_read_as_people_write_them(written: object, read: object) -> None:
    assert parse_arguments(written) == read


@pytest.mark.parametrize("wrong", ["64", "x y=1", {"a": [1]}, {"1a": 2}])
def test_wrong_arguments_are_refused(wrong: object) -> None:
    with pytest.raises(OptionsError, match=r"workload\.arguments"):
        read_options({"workload": {"kind": "module", "target": "a:b", "arguments": wrong}})


@pytest.mark.parametrize("target", ["", "os.system", "a:b:c", "a:b()", "a b:c", ":b", "import os;a:b"])
def test_a_target_names_a_module_and_a_function(target: str) -> None:
    with pytest.raises(OptionsError, match=r"write package\.module:function"):
        read_options({"workload": {"kind": "module", "target": target}})


def test_any_argument_can_be_set() -> None:
    changed = set_options(OPTIONS, [("workload.arguments.batch", "32"), ("workload.arguments.name", "a")])
    assert _arguments(changed) == {"batch": 32, "name": "a"}


def test_what_the_code_decides_is_no_option() -> None:
    with pytest.raises(OptionsError, match=r"training.precision is up to the module's own code"):
        set_options(OPTIONS, [("training.precision", "mixed_float16")])
    with pytest.raises(OptionsError, match=r"remove pipeline.stages"):
        read_options(
            {**OPTIONS.model_dump(mode="json"), "pipeline": {"stages": [{"stage": "read"}, {"stage": "batch"}]}}
        )
    with pytest.raises(OptionsError, match="the images workload needs a pipeline with stages"):
        read_options({"workload": {"kind": "images"}})


def test_the_source_calls_the_function_with_preset_and_arguments() -> None:
    source = render_source(set_options(OPTIONS, [("workload.arguments.name", "'; import os")]))
    assert source.startswith("# Dataset and training step of package.module:make")
    assert """sys.path.insert(0, "/home/me/it's")""" in source
    assert """ARGUMENTS = {**package.module.PRESETS["fast"], "name": "'; import os"}""" in source
    assert "WORKLOAD = package.module.make(**ARGUMENTS)" in source
    compile(source, "pipeline.py", "exec")
    threads = set_options(OPTIONS, [("pipeline.private_threadpool_size", "8")])
    assert "options.threading.private_threadpool_size = 8" in render_source(threads)


def test_no_advice_is_given_on_stages_that_are_not_known() -> None:
    assert lint_pipeline(OPTIONS) == ()
    assert OPTIONS.amounts is None


def test_presets_of_a_module_race() -> None:
    arms = [with_preset(OPTIONS, name).model_dump(mode="json") for name in ("slow", "fast")]
    assert read_race_options({"arms": arms}).arm_names == ("slow", "fast")
