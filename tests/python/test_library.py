# SPDX-License-Identifier: MIT
"""The package and the C header say the same, and the library is found, or its absence explained."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

import libswin
from libswin import prototypes

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PACKAGE = os.path.join(ROOT, "bindings", "python")


def built(name: str) -> str:
    """A helper that meson built."""
    if name not in os.environ:
        pytest.skip(f"{name} is not set: run through meson")
    return os.environ[name]


def header(name: str) -> str:
    text = open(os.path.join(ROOT, "include", "swin", name)).read()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def test_structs_are_laid_out_as_in_c():
    said = subprocess.run([built("SWIN_LAYOUT")], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = []
    for name, struct in prototypes.STRUCTS.items():
        ours.append(f"{name} {prototypes.sizeof(struct)}")
        ours += [f"{name}.{field} {getattr(struct, field).offset} {getattr(struct, field).size}"
                 for field, *_ in struct._fields_]
    assert ours == said


def test_the_version_is_the_headers():
    numbers = [re.search(rf"#define SWIN_VERSION_{part} (\d+)", header("version.h")).group(1)
               for part in ("MAJOR", "MINOR", "PATCH")]
    assert libswin.__version__ == ".".join(numbers) == libswin.library_version()


def test_every_struct_is_known():
    assert re.findall(r"^typedef struct (swin_\w+) \{", header("swin.h"), re.M) == list(prototypes.STRUCTS)
    for name, struct in prototypes.STRUCTS.items():
        assert prototypes.library().swin_struct_size(name.encode()) == prototypes.sizeof(struct), name


def test_structs_of_other_sizes_are_refused(monkeypatch):
    """One that grows may be larger in the library; none may be smaller, and a final one has one size."""
    loaded = prototypes.library()
    size = prototypes.sizeof(prototypes.SwinImage)

    class Image(prototypes.Structure):
        _fields_ = [*prototypes.SwinImage._fields_, ("more", prototypes.c_uint64)]

    class OutputInfo(prototypes.Structure):
        _fields_ = prototypes.SwinOutputInfo._fields_[:-1]

    class Maps(prototypes.Structure):
        _fields_ = prototypes.SwinMaps._fields_[:-1]

    monkeypatch.setitem(prototypes.STRUCTS, "swin_maps", Maps)
    assert prototypes._checked(loaded, "it") is loaded
    for name, struct, sizes in (("swin_image", Image, f"{size} bytes, this package needs {size + 8}"),
                                ("swin_output_info", OutputInfo, "24 bytes, this package needs 20")):
        with monkeypatch.context() as other:
            other.setitem(prototypes.STRUCTS, name, struct)
            with pytest.raises(libswin.LibraryError) as raised:
                prototypes._checked(loaded, "it")
            assert str(raised.value) == f"it has {name} of {sizes}"


def test_every_function_is_known_with_its_number_of_arguments():
    declared = dict(re.findall(r"^SWIN_API [^;(]*?(swin_\w+)\(([^;]*)\);", header("swin.h"), re.M))
    assert set(declared) == set(prototypes.FUNCTIONS)
    for name, arguments in declared.items():
        count = 0 if arguments.strip() == "void" else arguments.count(",") + 1
        assert count == len(prototypes.FUNCTIONS[name][1]), name
    for name, (result, _) in prototypes.FUNCTIONS.items():
        declaration = rf"^SWIN_API (?:SWIN_NODISCARD )?([\w ]+[ *]+){name}\("
        returns = re.search(declaration, header("swin.h"), re.M).group(1).strip()
        expected = {"swin_status": "c_int", "void": "None", "const char *": "c_char_p", "uint32_t": "c_uint",
                    "size_t": "c_ulong"}[returns]
        assert (result.__name__ if result else "None") == expected, name


@pytest.mark.parametrize("enum, prefix, names", [
    ("swin_lineage", "SWIN_LINEAGE_", prototypes.LINEAGES),
    ("swin_precision", "SWIN_PRECISION_", prototypes.PRECISIONS),
    ("swin_out_norm", "SWIN_OUT_NORM_", prototypes.OUT_NORMS), ("swin_layout", "SWIN_LAYOUT_", prototypes.LAYOUTS),
    ("swin_tensor_use", "SWIN_TENSOR_", prototypes.TENSOR_USES),
    ("swin_attention_view", "SWIN_ATTENTION_", prototypes.ATTENTION_VIEWS),
])
def test_words_stand_for_the_numbers_of_the_header(enum, prefix, names):
    body = re.search(rf"typedef enum {enum} \{{(.*?)\}}", header("swin.h"), re.S).group(1)
    values = re.findall(rf"{prefix}(\w+) = (\d+)", body)
    assert [(name.lower(), int(number)) for name, number in values] == [(name, i) for i, name in enumerate(names)]


@pytest.mark.parametrize("name", ["HEAD_MEAN", "HEAD_EACH", "WINDOW_EACH"])
def test_marks_are_those_of_the_header(name):
    assert re.search(rf"#define SWIN_{name} \((-?\d+)\)", header("swin.h")).group(1) == str(getattr(prototypes, name))


def test_every_status_has_an_exception():
    from libswin import errors

    body = re.search(r"typedef enum swin_status \{(.*?)\}", header("swin.h"), re.S).group(1)
    for name, number in re.findall(r"SWIN_ERR_(\w+) = (\d+)", body):
        error = errors.from_status(int(number), "text")
        assert isinstance(error, errors.Error) and error.status == int(number) and str(error) == "text"
        expected = {"IO": "FileError"}.get(name, name.title().replace("_", "") + "Error")
        assert type(error).__name__ == expected
    assert type(errors.from_status(77, "x")) is errors.InternalError


def test_the_abi_version_is_the_header_s():
    assert f"#define SWIN_ABI_VERSION {prototypes.ABI_VERSION}\n" in header("version.h")


# ----------------------------------------------------------------------------------------------------------------------

def attempt(path, package=PACKAGE) -> str:
    """What a fresh interpreter says when it needs the library."""
    environment = {key: value for key, value in os.environ.items() if key not in ("LIBSWIN_PATH", "LD_LIBRARY_PATH")}
    if path is not None:
        environment["LIBSWIN_PATH"] = str(path)
    program = ("import libswin\n"
               "try: print(libswin.library_version())\n"
               "except libswin.LibraryError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", program], env={**environment, "PYTHONPATH": package},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return done.stdout.strip()


def test_named_by_file_and_by_directory(tmp_path):
    path = built("LIBSWIN_PATH")
    assert re.fullmatch(r"\d+\.\d+\.\d+", attempt(path))
    shutil.copy(path, tmp_path / "libswin.so.0")
    assert re.fullmatch(r"\d+\.\d+\.\d+", attempt(tmp_path))
    os.rename(tmp_path / "libswin.so.0", tmp_path / "libswin.so")
    assert re.fullmatch(r"\d+\.\d+\.\d+", attempt(tmp_path))


def test_beside_the_package(tmp_path):
    shutil.copytree(os.path.join(PACKAGE, "libswin"), tmp_path / "libswin")
    shutil.copy(built("LIBSWIN_PATH"), tmp_path / "libswin" / "libswin.so.0")
    assert re.fullmatch(r"\d+\.\d+\.\d+", attempt(None, str(tmp_path)))


def test_not_found_lists_the_places():
    said = attempt(None)
    if re.fullmatch(r"\d+\.\d+\.\d+", said):
        pytest.skip("libswin is installed in the system")
    package = os.path.realpath(os.path.join(PACKAGE, "libswin"))
    assert re.fullmatch(r"libswin.so was not found; tried LIBSWIN_PATH \(not set\), .*/libswin.so.0 \(no such file\), "
                        r".*/libswin.so \(no such file\), libswin.so.0 \(cannot open shared object.*\)", said), said
    assert os.path.realpath(said.split("), ")[1].split(" (")[0]) == os.path.join(package, "libswin.so.0")


def test_a_wrong_name_is_not_passed_over(tmp_path):
    """Another libswin somewhere must not stand in for the one that was asked for."""
    assert attempt("/nowhere/libswin.so") == ("libswin.so was not found; tried LIBSWIN_PATH (/nowhere/libswin.so), "
                                              "/nowhere/libswin.so (no such file)")
    (tmp_path / "libswin.so").write_text("no library")
    assert "libswin.so (" in attempt(tmp_path) and "no such file" in attempt(tmp_path)


def test_another_abi_is_refused_before_anything_is_called():
    said = attempt(built("SWIN_STUB_ABI"))
    assert said == f"{built('SWIN_STUB_ABI')} has ABI version 99, this package needs 0"


def test_an_older_library_is_named():
    assert re.fullmatch(r".* is too old: it has no swin_version", attempt(built("SWIN_STUB_OLD")))


def test_any_other_library_is_no_libswin():
    import _ctypes
    assert attempt(_ctypes.__file__) == f"{_ctypes.__file__} is no libswin: it has no swin_abi_version"


def test_nothing_is_loaded_by_the_import():
    program = "import libswin, libswin.prototypes as p; assert p._library is None"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
