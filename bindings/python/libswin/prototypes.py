# SPDX-License-Identifier: MIT
"""include/swin/swin.h for ctypes: structs, functions, and the way to the library itself.

The library is looked for when it is first needed, in this order:

    1. LIBSWIN_PATH, a file or a directory; when it is set, nothing else is tried
    2. beside this package, where a wheel carries it
    3. the system's, by its soname

ctypes releases the interpreter lock for the time of every call.
"""

from __future__ import annotations

import os
import threading
from ctypes import (CDLL, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_size_t,
                    c_ssize_t, c_uint32, c_uint64, c_void_p, sizeof)
from typing import Any, Iterator

from .errors import LibraryError, from_status

ABI_VERSION = 0
MAX_STAGES = 5

_PerStage = c_int32 * MAX_STAGES
_Pair = c_int32 * 2
_PairPerStage = _Pair * MAX_STAGES


class SwinError(Structure):
    _fields_ = [("status", c_int32), ("backend", c_int32), ("message", c_char * 504)]


class SwinSelftestResult(Structure):
    _fields_ = [("struct_size", c_size_t), ("kernel", c_char_p), ("isa", c_char_p), ("error", c_double)]


class SwinConfig(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("version", c_int32), ("lineage", c_int32), ("patch_size", c_int32),
        ("embed_dim", c_int32), ("stages", c_int32), ("depths", _PerStage), ("heads", _PerStage),
        ("window", _PairPerStage), ("pretrained_window", _PairPerStage), ("qkv_bias", c_int32), ("patch_norm", c_int32),
        ("out_norm", c_int32), ("absolute_position", _Pair), ("image_size", _Pair), ("block_norm_period", c_int32),
        ("block_norm_last", c_int32), ("mlp_ratio", c_double),
    ]


class SwinModelParams(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("version", c_int32), ("lineage", c_int32), ("window", _PairPerStage),
        ("pretrained_window", _PairPerStage), ("image_size", _Pair), ("out_norm", c_int32), ("precision", c_int32),
        ("max_header_bytes", c_uint64), ("prefix", c_char_p),
    ]


class SwinModelInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("dialect", c_char_p), ("lineage", c_char_p),
        ("lineage_reason", c_char_p), ("window_reason", c_char_p), ("prefix", c_char_p), ("dtype", c_char_p),
        ("parameter_count", c_uint64), ("used_count", c_uint64), ("ignored_count", c_uint64),
        ("foreign_count", c_uint64), ("unknown_count", c_uint64), ("nonfinite_count", c_uint64),
    ]


class SwinOutputInfo(Structure):
    _fields_ = [("level", c_int32), ("stride", c_int32), ("channels", c_int32), ("height", c_int32), ("width", c_int32),
                ("normed", c_int32)]


class SwinSessionParams(Structure):
    _fields_ = [("struct_size", c_size_t), ("precision", c_int32), ("threads", c_int32), ("profile", c_int32)]


class SwinImage(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("data", c_void_p), ("format", c_int32), ("height", c_int32), ("width", c_int32),
        ("canvas_height", c_int32), ("canvas_width", c_int32), ("row_stride", c_ssize_t), ("plane_stride", c_ssize_t),
        ("mean", c_float * 3), ("std", c_float * 3),
    ]


class SwinMaps(Structure):
    _fields_ = [("struct_size", c_size_t), ("layout", c_int32), ("reserved", c_int32), ("data", c_void_p * MAX_STAGES),
                ("capacity", c_size_t * MAX_STAGES)]


class SwinSessionInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("precision", c_int32), ("threads", c_int32), ("kernels", c_char_p),
        ("backend", c_char_p), ("matmul", c_char_p), ("weight_bytes", c_uint64), ("scratch_bytes", c_uint64),
    ]


class SwinProfile(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("total_ms", c_double), ("patch_embed_ms", c_double),
        ("blocks_ms", c_double * MAX_STAGES), ("patch_merge_ms", c_double * MAX_STAGES),
        ("output_ms", c_double * MAX_STAGES), ("gflop", c_double * (MAX_STAGES + 1)),
    ]


class SwinAttentionRequest(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("stage", c_int32), ("block", c_int32), ("head", c_int32), ("view", c_int32),
        ("query", _Pair), ("window", c_int32), ("reserved", c_int32),
    ]


class SwinAttentionInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("stride", c_int32), ("heads", c_int32), ("map", _Pair), ("window", _Pair),
        ("shift", _Pair), ("windows", _Pair), ("cell", _Pair), ("query_window", c_int32), ("query_slot", c_int32),
        ("weight_count", c_size_t), ("token_count", c_size_t),
    ]


class SwinAttention(Structure):
    _fields_ = [("struct_size", c_size_t), ("weights", c_void_p), ("weight_capacity", c_size_t), ("tokens", c_void_p),
                ("token_capacity", c_size_t)]


STRUCTS: dict[str, type[Structure]] = {
    "swin_error": SwinError, "swin_selftest_result": SwinSelftestResult, "swin_config": SwinConfig,
    "swin_model_params": SwinModelParams, "swin_model_info": SwinModelInfo, "swin_output_info": SwinOutputInfo,
    "swin_session_params": SwinSessionParams, "swin_image": SwinImage, "swin_maps": SwinMaps,
    "swin_session_info": SwinSessionInfo, "swin_profile": SwinProfile, "swin_attention_request": SwinAttentionRequest,
    "swin_attention_info": SwinAttentionInfo, "swin_attention": SwinAttention,
}

_Error = POINTER(SwinError)
_Status = c_int

#: name: (result, arguments). Handles are void pointers.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "swin_abi_version": (c_uint32, []),
    "swin_version": (c_uint32, []),
    "swin_version_string": (c_char_p, []),
    "swin_status_string": (c_char_p, [_Status]),
    "swin_struct_size": (c_size_t, [c_char_p]),
    "swin_selftest": (_Status, [c_size_t, POINTER(SwinSelftestResult), c_size_t, _Error]),
    "swin_config_preset": (_Status, [POINTER(SwinConfig), c_size_t, c_char_p, _Error]),
    "swin_config_preset_name": (c_char_p, [c_size_t]),
    "swin_model_params_init": (None, [POINTER(SwinModelParams), c_size_t]),
    "swin_model_open": (_Status, [c_char_p, POINTER(SwinModelParams), POINTER(c_void_p), _Error]),
    "swin_model_create_random": (_Status, [POINTER(SwinConfig), c_uint64, POINTER(SwinModelParams), POINTER(c_void_p),
                                           _Error]),
    "swin_model_destroy": (None, [c_void_p]),
    "swin_model_config": (_Status, [c_void_p, POINTER(SwinConfig), c_size_t, _Error]),
    "swin_model_get_info": (_Status, [c_void_p, POINTER(SwinModelInfo), c_size_t, _Error]),
    "swin_model_tensor_name": (c_char_p, [c_void_p, c_int, c_size_t]),
    "swin_model_output_info": (_Status, [c_void_p, c_int32, c_int32, POINTER(SwinOutputInfo), _Error]),
    "swin_session_params_init": (None, [POINTER(SwinSessionParams), c_size_t]),
    "swin_session_create": (_Status, [c_void_p, POINTER(SwinSessionParams), POINTER(c_void_p), _Error]),
    "swin_session_destroy": (None, [c_void_p]),
    "swin_image_init": (None, [POINTER(SwinImage), c_size_t]),
    "swin_maps_init": (None, [POINTER(SwinMaps), c_size_t]),
    "swin_session_run": (_Status, [c_void_p, POINTER(SwinImage), c_size_t, POINTER(SwinMaps), _Error]),
    "swin_session_get_info": (_Status, [c_void_p, POINTER(SwinSessionInfo), c_size_t, _Error]),
    "swin_session_get_profile": (_Status, [c_void_p, POINTER(SwinProfile), c_size_t, _Error]),
    "swin_attention_request_init": (None, [POINTER(SwinAttentionRequest), c_size_t]),
    "swin_model_attention_info": (_Status, [c_void_p, c_int32, c_int32, POINTER(SwinAttentionRequest),
                                            POINTER(SwinAttentionInfo), c_size_t, _Error]),
    "swin_attention_init": (None, [POINTER(SwinAttention), c_size_t]),
    "swin_session_attention": (_Status, [c_void_p, POINTER(SwinImage), POINTER(SwinAttentionRequest),
                                         POINTER(SwinAttention), _Error]),
}

LINEAGES = ("auto", "detection", "microsoft", "torchvision", "timm", "huggingface", "mmpretrain")
PRECISIONS = ("auto", "f32", "bf16")
OUT_NORMS = ("auto", "on", "off")
LAYOUTS = ("nchw", "nhwc")
ATTENTION_VIEWS = ("on_map", "in_window")
HEAD_MEAN, HEAD_EACH, WINDOW_EACH = -1, -2, -1
TENSOR_USES = ("used", "ignored", "foreign", "unknown")
PIXEL_RGB8, PIXEL_BGR8, PIXEL_F32_PLANAR = 1, 2, 3

_lock = threading.Lock()
_library: CDLL | None = None


def library() -> CDLL:
    """The loaded library, with the types of all its functions set."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _load()
    return _library


def check(status: int, error: SwinError) -> None:
    """Raises what a function returned."""
    if status:
        raise from_status(status, error.message.decode("ascii", "replace"), error.backend)


def initialised(kind: str) -> Any:
    """A struct with the library's defaults."""
    made = STRUCTS[kind]()
    getattr(library(), f"{kind}_init")(made, sizeof(made))
    return made


def _candidates() -> Iterator[str]:
    named = os.environ.get("LIBSWIN_PATH")
    if named:
        yield from _in_directory(named) if os.path.isdir(named) else (named,)
        return
    yield from _in_directory(os.path.dirname(os.path.abspath(__file__)))
    yield f"libswin.so.{ABI_VERSION}"


def _in_directory(directory: str) -> Iterator[str]:
    yield os.path.join(directory, f"libswin.so.{ABI_VERSION}")
    yield os.path.join(directory, "libswin.so")


def _load() -> CDLL:
    tried = []
    for path in _candidates():
        if os.path.isabs(path) and not os.path.exists(path):
            tried.append(f"{path} (no such file)")
            continue
        try:
            loaded = CDLL(path)
        except OSError as error:
            tried.append(f"{path} ({str(error).removeprefix(path).lstrip(': ')})")
            continue
        return _checked(loaded, path)
    named = os.environ.get("LIBSWIN_PATH")
    tried.insert(0, f"LIBSWIN_PATH ({named})" if named else "LIBSWIN_PATH (not set)")
    raise LibraryError(f"libswin.so was not found; tried {', '.join(tried)}")


def _checked(loaded: CDLL, path: str) -> CDLL:
    """Refuses a library that this module does not describe, before anything else in it is called."""
    try:
        version = loaded.swin_abi_version
    except AttributeError:
        raise LibraryError(f"{path} is no libswin: it has no swin_abi_version") from None
    version.restype, version.argtypes = FUNCTIONS["swin_abi_version"]
    if version() != ABI_VERSION:
        raise LibraryError(f"{path} has ABI version {version()}, this package needs {ABI_VERSION}")
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise LibraryError(f"{path} is too old: it has no {name}") from None
        function.restype, function.argtypes = result, arguments
    for name, struct in STRUCTS.items():
        ours, theirs = sizeof(struct), loaded.swin_struct_size(name.encode())
        if theirs < ours or (theirs > ours and struct._fields_[0][0] != "struct_size"):
            raise LibraryError(f"{path} has {name} of {theirs} bytes, this package needs {ours}")
    return loaded
