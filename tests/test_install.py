"""How `make` installs: PyTorch's build for the machine, everything by its hash, tried with packages made here."""

import base64
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
CPU_LOCK = (ROOT / "requirements-cpu.lock").read_text()
BUILDER = '''
"""Builds a package of one line, in place: what setuptools would do."""
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    import setuptools  # the locked one, as no other is fetched for a build
    name = "faithlab-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("built_by.py", f"setuptools = '{setuptools.VERSION}'")
        wheel.writestr("faithlab-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: faithlab\\nVersion: 1\\n")
        wheel.writestr("faithlab-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any")
        wheel.writestr("faithlab-1.dist-info/RECORD", "")
    return name
'''
VERSIONS = {
    "setuptools": "900",
    "wheel": "900",
    "numpy": "3",
    "torch": "2",
    "torchvision": "1",
    "triton": "9",
    "cuda-bindings": "13",
    "nvidia-cublas": "13",
    "nvidia-cusolver": "12",
}


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([\w.+]+)", text, re.MULTILINE))


def wheel(name: str, version: str, index: Path) -> str:
    """Put a package without content into an index that is a folder. Its line for a lock, with its hash."""
    file = f"{name.replace('-', '_')}-{version}"
    page = index / name / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    path = page.parent / f"{file}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        content = {
            f"{name.replace('-', '_')}.py": f"VERSION = '{version}'",
            f"{file}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{file}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        for inside, text in content.items():
            made.writestr(inside, text)
        digests = {
            key: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()) for key, text in content.items()
        }
        record = [f"{key},sha256={digest.decode().rstrip('=')}," for key, digest in digests.items()]
        made.writestr(f"{file}.dist-info/RECORD", "\n".join([*record, f"{file}.dist-info/RECORD,,"]))
    page.write_text("".join(f'<a href="{p.name}">{p.name}</a>' for p in sorted(page.parent.glob("*.whl"))))
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A new environment with the pip of this one, which takes seconds to install."""
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    pip = importlib.util.find_spec("pip")
    subprocess.run([sys.executable, "-m", "venv", *(["--without-pip"] if pip else []), folder], check=True)
    if pip:
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "pip").symlink_to(Path(pip.origin).parent)
    return folder


@pytest.fixture
def project(tmp_path, environment):
    """A project of empty packages, installed by our Makefile from two indices that are folders."""
    folder = tmp_path / "project"
    shutil.copytree(environment, folder / ".venv", symlinks=True)
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "backend.py").write_text(BUILDER)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (folder / "requirements.lock").write_text(
        "".join(wheel(name, version, tmp_path / "pypi") for name, version in VERSIONS.items())
    )
    cpu = [wheel(name, f"{VERSIONS[name]}+cpu", tmp_path / "cpu") for name in ("torch", "torchvision")]
    (folder / "requirements-cpu.lock").write_text("".join(cpu))
    return folder


def install(project: Path, torch: str = "cpu", index: str | None = None) -> tuple[dict[str, str], str]:
    """Make the environment. What is in it, and what was said."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "MAKE", "PYTHON"))}
    settings = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": (project.parent / "pypi").as_uri(),
        "PIP_NO_CACHE_DIR": "1",
        "TORCH": torch,
        "TORCH_INDEX": index or (project.parent / "cpu").as_uri(),
        "PYTHON": sys.executable,
    }
    ran = subprocess.run(
        ["make", f".venv/.ready-{torch}"], cwd=project, env=kept | settings, capture_output=True, text=True
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    (packages,) = (project / ".venv/lib").glob("python*/site-packages")
    return {one.name: one.version for one in metadata.distributions(path=[str(packages)])}, said


@pytest.mark.slow
def test_without_a_gpu_its_libraries_stay_away_and_come_after_a_change_of_mind(project):
    found, _ = install(project)
    assert found["torch"] == "2+cpu"
    assert found["torchvision"] == "1+cpu"
    assert found["numpy"] == "3"
    assert not {"triton", "cuda-bindings", "nvidia-cublas", "nvidia-cusolver"} & set(found)
    words = [project / ".venv/bin/python", "-c", "import built_by; print(built_by.setuptools)"]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.stdout.strip() == VERSIONS["setuptools"], "built by another setuptools than the locked one" + ran.stderr
    found, _ = install(project, torch="cuda")
    assert {name: found[name] for name in VERSIONS} == VERSIONS
    assert not (project / ".venv/.ready-cpu").exists(), "the other build is installed anew when it is asked for"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["not reached", "other hash", "not for this Python"])
def test_where_the_cpu_build_is_not_to_be_had_pypi_s_comes_without_what_is_idle(project, fault):
    lock = project / "requirements-cpu.lock"
    index = None
    if fault == "not reached":
        index = (project.parent / "nowhere").as_uri()
    elif fault == "other hash":
        lock.write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", lock.read_text()))
    else:
        lock.write_text(re.sub(r" \\", " ; python_version < '3' \\\\", lock.read_text()))
    found, said = install(project, index=index)
    assert found["torch"] == "2"
    assert found["nvidia-cublas"] == "13", "PyTorch of PyPI does not import without it"
    assert not {"triton", "cuda-bindings", "nvidia-cusolver"} & set(found)
    assert "PyTorch comes from PyPI" in said


@pytest.mark.slow
def test_a_file_that_is_not_the_locked_one_is_refused(project):
    lock = project / "requirements.lock"
    lock.write_text(re.sub(r"(numpy==3 .\n +--hash=sha256:)\w{8}", r"\g<1>00000000", lock.read_text()))
    with pytest.raises(AssertionError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        install(project)


def test_both_locks_are_of_one_pytorch():
    cpu = pins(CPU_LOCK)
    assert cpu == {name: f"{pins(LOCK)[name]}+cpu" for name in ("torch", "torchvision")}, "make lock"


@pytest.mark.parametrize("text", [LOCK, CPU_LOCK], ids=["requirements.lock", "requirements-cpu.lock"])
def test_every_package_has_a_hash(text):
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


def test_what_builds_is_locked():
    assert {"setuptools", "wheel"} <= set(pins(LOCK))
