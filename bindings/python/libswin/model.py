# SPDX-License-Identifier: MIT
"""Models: checkpoints in, images in, feature maps out."""

from __future__ import annotations

import os
import re
import time
import warnings
from ctypes import c_void_p, sizeof
from operator import index
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

import numpy as np

from .arguments import c_text, int32, shown, uint64
from .attention import Attention, HeadChoice, WindowChoice, attend
from .config import Config, Size, Window, _from_struct, index_of, pair, preset, windows
from .errors import ArgumentError, StateError, in_python
from .images import Canvas, Image, Images, Pixels, as_struct, canvas_of, check_normalisation, images_of, pixels, split
from .prototypes import (LAYOUTS, LINEAGES, MAX_STAGES, OUT_NORMS, PRECISIONS, TENSOR_USES,
                         SwinConfig, SwinError, SwinImage, SwinMaps, SwinModelInfo, SwinOutputInfo, SwinSessionInfo,
                         check, initialised, library)
from .session import Sessions

#: 0 to 3, or "c2" to "c5"; 4, "c6", where there is a fifth stage.
Level = Union[int, str]

#: What to compute: level, shape and number of floats of one image's map.
_Plan = list[tuple[int, tuple[int, ...], int]]

_NAMED_LEVELS = {f"c{level + 2}": level for level in range(MAX_STAGES)}
_SLICE = 0.1      # seconds: how long a batch may keep Python from hearing Ctrl-C
_MAX_PLANS = 256  # image sizes of a model to remember


class Info(NamedTuple):
    """What was recognised in a file."""

    name: str             #: nearest published configuration, or ""
    dialect: str          #: naming: "microsoft", "detection", "mmdetection", "timm", ..., "random"
    lineage: str          #: whose arithmetic
    lineage_reason: str
    window_reason: str
    prefix: str           #: what stands before every tensor name, e.g. "backbone."
    dtype: str            #: "F32", "F16", "BF16", "F64", or "mixed"
    parameter_count: int  #: of the backbone as used
    used_count: int       #: tensors used
    ignored_count: int    #: derived buffers and classifier heads
    foreign_count: int    #: tensors beside the backbone
    unknown_count: int    #: tensors within the backbone that libswin does not know
    nonfinite_count: int  #: NaN or infinite weights seen so far


class OutputShape(NamedTuple):
    """One level's map for an image of a given size."""

    level: int
    stride: int    #: pixels per map cell
    channels: int
    height: int
    width: int
    normed: bool   #: the level passes a LayerNorm


class SessionInfo(NamedTuple):
    """What computes."""

    precision: str      #: "f32" or "bf16": what "auto" is here
    threads: int
    kernels: str        #: instruction set of libswin's own kernels
    backend: str        #: e.g. "oneDNN 2.6.3"
    matmul: str         #: the matrix kernel: oneDNN's name, e.g. "brg:avx512_core", or "swin:..." for libswin's own
    weight_bytes: int   #: packed weights, shared by all sessions of this precision
    scratch_bytes: int  #: memory of this session alone


class _Handle:
    """A swin_model; released with the last reference, so that a call in another thread keeps it alive."""

    __slots__ = ("_as_parameter_", "_destroy")

    def __init__(self, pointer: c_void_p) -> None:
        self._as_parameter_, self._destroy = pointer, library().swin_model_destroy

    def __del__(self) -> None:
        self._destroy(self._as_parameter_)


class Model:
    """Weights and configuration, immutable; made by `load` and `random`. Any number of threads may call it at once.

    >>> import numpy, libswin
    >>> model = libswin.random(libswin.Config(embed_dim=32, depths=(2, 2), heads=(1, 2)))
    >>> maps = model(numpy.zeros((60, 90, 3), numpy.uint8))
    >>> [m.shape for m in maps]                                  # [N, C, H, W], strides 4 and 8
    [(1, 32, 15, 23), (1, 64, 8, 12)]
    """

    def __init__(self, handle: c_void_p, origin: tuple[Callable[..., "Model"], tuple, dict[str, Any]]) -> None:
        self._handle: Optional[_Handle] = _Handle(handle)
        self._origin = origin
        self._sessions = Sessions()
        self._plans: dict[tuple, _Plan] = {}
        config, error = SwinConfig(), SwinError()
        check(library().swin_model_config(handle, config, sizeof(config), error), error)
        self._config = _from_struct(config)

    def close(self) -> None:
        """Releases the weights now, or when the calls that are under way in other threads return. Afterwards the model
        cannot be called."""
        self._handle = None
        self._sessions.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple:
        """Models travel to other processes as the way they were made."""
        return _make, self._origin

    def __copy__(self) -> "Model":
        return self

    def __deepcopy__(self, memo: dict) -> "Model":
        return self

    def __repr__(self) -> str:
        if self._handle is None:
            return "<libswin.Model, closed>"
        info = self.info
        return (f"<libswin.Model {info.name or 'Swin V%d' % self.config.version}, {info.dialect} naming, "
                f"{info.lineage} lineage, {info.parameter_count / 1e6:.1f} M parameters>")

    @property
    def config(self) -> Config:
        """What the model is made of."""
        return self._config

    @property
    def info(self) -> Info:
        """What was recognised in the file, and how much of it is used."""
        made, error = SwinModelInfo(), SwinError()
        check(library().swin_model_get_info(self._open(), made, sizeof(made), error), error)
        found = Info._make(value.decode() if isinstance(value, bytes) else value
                           for value in (getattr(made, name) for name in Info._fields))
        return found._replace(window_reason=in_python(found.window_reason))

    def tensor_names(self, use: str) -> list[str]:
        """Names of the file's tensors that were "used", "ignored", "foreign" or "unknown"."""
        names: list[str] = []
        number = index_of("use", TENSOR_USES, use)
        while (name := library().swin_model_tensor_name(self._open(), number, len(names))) is not None:
            names.append(name.decode())
        return names

    def output_shapes(self, height: int, width: int) -> list[OutputShape]:
        """The maps that an image of this size gives, one entry per level, before anything is computed.

        >>> import libswin
        >>> model = libswin.random(libswin.Config(embed_dim=32, depths=(2, 2), heads=(1, 2)))
        >>> model.output_shapes(800, 1333)[1]
        OutputShape(level=1, stride=8, channels=64, height=100, width=167, normed=False)
        """
        return [OutputShape(i.level, i.stride, i.channels, i.height, i.width, bool(i.normed))
                for i in self._output_infos(int32("height", height), int32("width", width))]

    def session_info(self, precision: str = "auto", threads: int = 0) -> SessionInfo:
        """What a call with these arguments computes with."""
        made, error = SwinSessionInfo(), SwinError()
        key = _session_key(precision, threads)
        session = self._sessions.take(self._open(), key)
        try:
            check(library().swin_session_get_info(session.handle, made, sizeof(made), error), error)
            return SessionInfo(PRECISIONS[made.precision], made.threads, made.kernels.decode(), made.backend.decode(),
                               made.matmul.decode(), made.weight_bytes, made.scratch_bytes)
        finally:
            self._sessions.give(key, session)

    def __call__(self, image: Images, *, precision: str = "auto", threads: int = 0,
                 levels: Optional[Sequence[Level]] = None, layout: str = "nchw", out: Optional[Sequence[Any]] = None,
                 mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None, bgr: bool = False,
                 canvas: Optional[Canvas] = None) -> list:
        """Feature maps of an image, a batch, or a list of images.

        image       uint8 [H, W, 3] or [N, H, W, 3], normalised inside, with any row stride, also flipped; or float32
                    [3, H, W] or [N, 3, H, W], normalised already. A numpy array, or anything that shares its
                    memory like one: a torch CPU tensor, an RGB image of PIL (the others by .convert("RGB")). Copied
                    only if its innermost axes are not dense.
        precision   "f32", "bf16", or "auto": the one that the model was loaded with
        threads     how many work on this call; 0: one per CPU
        levels      the levels to compute, e.g. (1, 2, 3) or ("c3", "c4", "c5"); default all. Stages after the last one
                    are not computed.
        layout      "nchw" or "nhwc"
        out         float32 arrays, dense and of the right shapes, one per level, to write into
        mean, std   for uint8: subtracted, then divided by, in 0-255 units, in the order R, G, B; default ImageNet's
        bgr         the channels of uint8 images lie in the order B, G, R, as in OpenCV
        canvas      zeros are added (after normalisation) below and to the right up to this size; a number means: up to
                    its next multiple

        Returns a list of float32 arrays [N, C, H, W] (or [N, H, W, C]), one per level. A list of images gives a list of
        such lists, each what the image alone gives; with a canvas, the list is one batch: the images, of any size, lie
        in the canvas's top left corners, and a number means the next multiple that holds them all.

        Each image's maps are bit for bit the same alone and in a batch. Other threads run meanwhile. Ctrl-C works
        between images.

        >>> import numpy, libswin
        >>> model = libswin.random(libswin.Config(embed_dim=32, depths=(2, 2), heads=(1, 2)))
        >>> images = [numpy.zeros((60, 90, 3), numpy.uint8), numpy.zeros((50, 64, 3), numpy.uint8)]
        >>> [m.shape for m in model(images, canvas=32)]
        [(2, 32, 16, 24), (2, 64, 8, 12)]
        >>> [[m.shape for m in maps] for maps in model(images, levels=[1])]
        [[(1, 64, 8, 12)], [(1, 64, 7, 8)]]
        """
        listed = isinstance(image, (list, tuple))
        batch = [pixels(one, bgr) for one in (images_of(image) if listed else split(image))]
        check_normalisation(batch, mean, std, bgr)
        rows, columns = canvas_of(batch, canvas)
        if listed and canvas is None:
            if out is not None:
                raise ArgumentError("out is given for a list of images, an array, a batch or a canvas expected")
            return [self._run([one], one.height, one.width, precision, threads, levels, layout, None, mean, std)
                    for one in batch]
        return self._run(batch, rows, columns, precision, threads, levels, layout, out, mean, std)

    def attention(self, image: Image, stage: int, block: int, *, query: Optional[Sequence[int]] = None,
                  window: Optional[WindowChoice] = None, head: HeadChoice = "mean", precision: str = "auto",
                  threads: int = 0, mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None,
                  bgr: bool = False, canvas: Optional[Canvas] = None) -> Attention:
        """What a block attends to: the softmax weights of one query on the map, or of the queries of a window.

        stage, block    which block; odd ones are shifted
        query           (row, column) of a pixel: what the token of its map cell attends to, laid out on the stage's
                        map, roll and padding undone; zeros where the query does not see
        window          a number, row by row after the roll, or "each": all weights of that window or of every one
        head            a number, "mean" over the heads, or "each"

        The other arguments are those of a call. Either query or window is given. The weights of a query are
        float32 [rows, columns], or [heads, rows, columns] of each head; those of a window [T, T] (query, key; T tokens
        in a window, padding included), or [heads, T, T], [windows, T, T], [windows, heads, T, T].

        A call does not keep weights: the image is computed anew, up to that block.

        >>> import numpy, libswin
        >>> model = libswin.random(libswin.Config(embed_dim=32, depths=(2, 2), heads=(1, 2)))
        >>> image = numpy.zeros((60, 90, 3), numpy.uint8)
        >>> seen = model.attention(image, 1, 1, query=(33, 70))
        >>> seen.weights.shape, seen.stride, seen.cell           # a map of 8 x 12 cells, each 8 x 8 pixels
        ((8, 12), 8, (4, 8))
        >>> bool(0 < seen.weights.sum() <= 1.0001)               # what is missing to 1 went to padding
        True
        >>> whole = model.attention(image, 1, 1, window="each", head="each")
        >>> whole.weights.shape, whole.windows, whole.window, whole.shift
        ((4, 2, 49, 49), (2, 2), (7, 7), (3, 3))
        >>> row = whole.weights[seen.query_window, :, seen.query_slot].mean(axis=0)
        >>> tokens = whole.tokens[seen.query_window]             # the cell in each place of the window; -1: padding
        >>> numpy.allclose(seen.weights.ravel()[tokens[tokens >= 0]], row[tokens >= 0], atol=1e-7)
        True
        """
        images = split(image)
        if len(images) != 1:
            raise ArgumentError(f"attention is asked of a batch of {len(images)} images, one expected")
        one = pixels(images[0], bgr)
        check_normalisation([one], mean, std, bgr)
        rows, columns = canvas_of([one], canvas)
        handle, key = self._open(), _session_key(precision, threads)
        session = self._sessions.take(handle, key)
        try:
            return attend(handle, session.handle, as_struct(one, rows, columns, mean, std), stage, block, query, window,
                          head)
        finally:
            self._sessions.give(key, session)

    def _run(self, batch: list[Pixels], rows: int, columns: int, precision: str, threads: int,
             levels: Optional[Sequence[Level]], layout: str, out: Optional[Sequence[Any]],
             mean: Optional[Sequence[float]], std: Optional[Sequence[float]]) -> list[np.ndarray]:
        handle, count = self._open(), len(batch)
        channels_last = index_of("layout", LAYOUTS, layout)
        plan = self._plan(rows, columns, levels, channels_last)
        if out is None:
            arrays = [np.empty((count, *shape), np.float32) for _, shape, _ in plan]
        else:
            arrays = _outputs(out, [(level, (count, *shape)) for level, shape, _ in plan])
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        images = (SwinImage * count)(*[as_struct(one, rows, columns, mean, std) for one in batch])
        maps, error, run = SwinMaps(sizeof(SwinMaps), channels_last), SwinError(), library().swin_session_run

        key = _session_key(precision, threads)
        session = self._sessions.take(handle, key)
        try:
            done, step = 0, 1
            while done < count:
                for (level, _, floats), address in zip(plan, addresses):
                    maps.data[level] = address + 4 * floats * done
                    maps.capacity[level] = floats * step
                start = time.perf_counter()
                check(run(session.handle, images[done], step, maps, error), error)
                done += step
                if done < count:
                    seconds = max(time.perf_counter() - start, 1e-6)
                    step = min(max(1, int(step * _SLICE / seconds)), count - done)
        finally:
            self._sessions.give(key, session)
        return arrays

    def _plan(self, rows: int, columns: int, levels: Optional[Sequence[Level]], channels_last: int) -> _Plan:
        """What to compute of an image of this size. Detectors meet few sizes over and over: plans are kept."""
        chosen = tuple(range(len(self._config.depths))) if levels is None else _levels(levels)
        key = (rows, columns, chosen, channels_last)
        plan = self._plans.get(key)
        if plan is None:
            infos = self._output_infos(rows, columns)
            if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= level < len(infos) for level in chosen):
                raise ArgumentError(f"levels are {shown(list(chosen))}, different ones from 0 to {len(infos) - 1} "
                                    "expected")
            plan = []
            for level in chosen:
                i = infos[level]
                shape = (i.height, i.width, i.channels) if channels_last else (i.channels, i.height, i.width)
                plan.append((level, shape, i.channels * i.height * i.width))
            if len(self._plans) >= _MAX_PLANS:
                self._plans = {}
            self._plans[key] = plan
        return plan

    def _output_infos(self, height: int, width: int) -> list[SwinOutputInfo]:
        infos, error = (SwinOutputInfo * MAX_STAGES)(), SwinError()
        check(library().swin_model_output_info(self._open(), height, width, infos, error), error)
        return list(infos[:len(self._config.depths)])

    def _open(self) -> _Handle:
        handle = self._handle
        if handle is None:
            raise StateError("the model is closed")
        return handle


def load(path: Union[str, "os.PathLike[str]"], *, version: int = 0, lineage: str = "auto",
         window: Optional[Window] = None, pretrained_window: Optional[Window] = None,
         image_size: Optional[Size] = None, out_norm: str = "auto", precision: str = "auto",
         max_header_bytes: int = 0, prefix: Optional[str] = None) -> Model:
    """Opens a safetensors checkpoint in any published naming; `python3 -m libswin convert` makes one of a .pth.

    Everything else is taken from the file unless it is given here:

    version             1 or 2: refuse a file of the other version
    lineage             whose arithmetic: one of `libswin.LINEAGES`
    window              a number for all four stages, one per stage, or (rows, columns) per stage. Where a V1 file has
                        another one, its position biases are resized, with a warning: the maps are others then
    pretrained_window   V2 only, likewise
    image_size          (height, width), or a number for both, for lineages that clamp windows by it
    out_norm            "on", "off" or "auto": whether levels pass a LayerNorm
    precision           what calls compute in that do not say: "f32", "bf16", or "auto", which is bf16 on a CPU with AMX
                        and f32 elsewhere. Another one is packed when a call first asks for it
    prefix              which Swin Transformer of a file that holds several, e.g. "teacher.backbone."
    """
    params = initialised("swin_model_params")
    params.version = int32("version", version)
    params.max_header_bytes = uint64("max_header_bytes", max_header_bytes)
    params.lineage = index_of("lineage", LINEAGES, lineage)
    params.out_norm = index_of("out_norm", OUT_NORMS, out_norm)
    params.precision = index_of("precision", PRECISIONS, precision)
    given = {name: _of_any_stages(name, value) for name, value in
             (("window", window), ("pretrained_window", pretrained_window)) if value is not None}
    for name, pairs in given.items():
        for s, sides in enumerate(pairs):
            getattr(params, name)[s][:] = sides
    if image_size is not None:
        params.image_size[:] = pair("image_size", image_size)
    params.prefix = None if prefix is None else c_text("prefix", prefix)
    path = os.fspath(path)
    model, error = c_void_p(), SwinError()
    check(library().swin_model_open(c_text("path", path, os.fsencode), params, model, error), error)
    made = Model(model, (load, (os.path.abspath(path),), dict(
        version=version, lineage=lineage, window=window, pretrained_window=pretrained_window, image_size=image_size,
        out_norm=out_norm, precision=precision, max_header_bytes=max_header_bytes, prefix=prefix)))
    stages = len(made.config.depths)
    for name, pairs in given.items():
        if len(pairs) != stages and (len(pairs) != MAX_STAGES or len(set(pairs)) > 1):  # else the same everywhere
            value = window if name == "window" else pretrained_window
            raise ArgumentError(f"{name} is {value}, of {len(pairs)} stages, but the model has {stages} stages")
    resized = re.search("position biases resized [^;]*", made.info.window_reason)
    if resized:
        warnings.warn(f"{path}: {resized[0]}, as window= asks: the maps are others than with the file's own window",
                      stacklevel=2)
    return made


def random(config: Union[str, Config], seed: int = 0, *, precision: str = "auto") -> Model:
    """A model with pseudo-random weights, the same for the same configuration and seed on every machine; precision is
    that of `load`.

    >>> import libswin
    >>> libswin.random("swin_tiny_patch4_window7_224").info.parameter_count
    27517818
    """
    params = initialised("swin_model_params")
    params.precision = index_of("precision", PRECISIONS, precision)
    struct = (preset(config) if isinstance(config, str) else config)._as_struct()
    model, error = c_void_p(), SwinError()
    check(library().swin_model_create_random(struct, uint64("seed", seed), params, model, error), error)
    return Model(model, (random, (config, seed), dict(precision=precision)))


def _session_key(precision: str, threads: int) -> tuple[int, int]:
    return index_of("precision", PRECISIONS, precision), int32("threads", threads)


def _of_any_stages(name: str, value: Window) -> tuple[tuple[int, int], ...]:
    """A window of as many stages as it is given for: how many there are, the file says later."""
    count = len(value) if hasattr(value, "__len__") and not isinstance(value, str) else MAX_STAGES
    return windows(name, value, min(max(count, 1), MAX_STAGES))


def _make(how: Callable[..., Model], arguments: tuple, options: dict[str, Any]) -> Model:
    return how(*arguments, **options)


# ----------------------------------------------------------------------------------------------------------------------

def _levels(levels: Sequence[Level]) -> tuple[int, ...]:
    """Numbers, of c2 to c5 too; whether the model has them, `_plan` asks."""
    try:
        if isinstance(levels, str):
            raise TypeError
        return tuple([_NAMED_LEVELS[level] if isinstance(level, str) else index(level) for level in levels])
    except (TypeError, KeyError):
        raise ArgumentError(f"levels are {shown(levels)}, a list of numbers from 0 to {MAX_STAGES - 1} or of names "
                            f"from 'c2' to 'c{MAX_STAGES + 1}' expected") from None


def _outputs(out: Sequence[Any], wanted: list[tuple[int, tuple[int, ...]]]) -> list[np.ndarray]:
    """The caller's arrays, as numpy arrays of the same memory; `wanted` are levels and shapes."""
    if len(out) != len(wanted):
        raise ArgumentError(f"out has {len(out)} arrays, one for each of the levels {[level for level, _ in wanted]} "
                            "expected")
    arrays = []
    for value, (level, shape) in zip(out, wanted):
        array = np.asarray(value)
        if array is not value and array.ctypes.data != np.asarray(value).ctypes.data:
            raise ArgumentError(f"out for level {level} is a {type(value).__name__} that does not share its memory")
        if array.dtype != np.float32 or array.shape != shape:
            raise ArgumentError(f"out for level {level} is {array.dtype} {list(array.shape)}, float32 {list(shape)} "
                                "expected")
        if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
            raise ArgumentError(f"out for level {level} is not dense, aligned and writeable")
        arrays.append(array)
    return arrays
