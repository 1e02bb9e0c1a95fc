/* SPDX-License-Identifier: MIT */
/*
 * swin.h - multi-scale feature maps of Swin Transformers, on CPUs.
 *
 * The story of a program, in five steps:
 *
 *   1. swin_model_open()           a checkpoint file becomes a model: recognised, checked, packed
 *   2. swin_model_output_info()    how large the maps of an image of this size will be
 *   3. swin_session_create()       scratch memory, threads and precision for one worker
 *   4. swin_session_run()          images in, feature maps out; any number of times, any image size
 *   5. swin_session_destroy(), swin_model_destroy()      in either order
 *
 * Two objects are the whole story:
 *
 *   swin_model     immutable once open; shared by any number of sessions and threads
 *   swin_session   mutable; one thread at a time; make one per worker
 *
 * Levels. A Swin Transformer has up to four stages. Level s is the output of stage s before patch merging, with
 * stride patch_size * 2^s (4, 8, 16, 32 for the published patch size 4) and embed_dim * 2^s channels: what FPN-style
 * detectors call c2..c5, res2..res5 or p0..p3.
 *
 * Words. N images in a batch, C channels, H rows, W columns. Layouts are written with the slowest index first.
 *
 * Errors. Every function that can fail returns a swin_status and takes an optional swin_error, owned by the caller,
 * whose message names the object, the value found and the value expected. The function resets it on entry; after a
 * failure nothing half-made is handed out. The library never prints, never exits, never reads the environment.
 *
 * Surroundings. A function computes with the default rounding, whatever its caller's, and gives that back; it cannot be
 * cancelled while it is inside. On a CPU with AMX the first model asks Linux for it, which afterwards wants alternate
 * signal stacks of at least sysconf(_SC_MINSIGSTKSZ) bytes in the whole process, and refuses where a smaller one is in
 * use: libswin then does without, as swin_session_info tells. Memory that oneDNN 2.6 cannot get for itself while it
 * prepares a product is beyond libswin: it may end the process.
 *
 * Structs that may grow start with `size_t struct_size`, set by the matching _init function. Fields are only ever
 * added at the end, and zero always means what an older program meant.
 *
 * Sources. [V1] Liu et al., Swin Transformer, ICCV 2021. [V2] Liu et al., Swin Transformer V2, CVPR 2022.
 */
#ifndef SWIN_SWIN_H
#define SWIN_SWIN_H

#include <stddef.h>
#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SWIN_API __attribute__((visibility("default")))
#define SWIN_NODISCARD __attribute__((warn_unused_result))
#else
#define SWIN_API
#define SWIN_NODISCARD
#endif

/* ---------------------------------------------------------------------------------------------------------------
 * Status and errors
 */

/* What happened, in few words that a program can act upon. Numbers are never reused. */
typedef enum swin_status {
    SWIN_OK = 0,
    SWIN_ERR_ARGUMENT = 1,    /* the caller passed something impossible                                    */
    SWIN_ERR_STATE = 2,       /* the object cannot do this now, e.g. a session entered by two threads      */
    SWIN_ERR_NO_MEMORY = 3,   /* memory could not be had                                                   */
    SWIN_ERR_IO = 4,          /* a file could not be opened or read                                        */
    SWIN_ERR_FORMAT = 5,      /* the file is broken, or is no safetensors file                             */
    SWIN_ERR_UNSUPPORTED = 6, /* the file is fine, libswin cannot compute it                               */
    SWIN_ERR_MISMATCH = 7,    /* the tensors do not form a Swin Transformer, or not the one asked for      */
    SWIN_ERR_LIMIT = 8,       /* a safety limit was hit                                                    */
    SWIN_ERR_BACKEND = 9,     /* oneDNN refused                                                            */
    SWIN_ERR_INTERNAL = 10    /* a fault in libswin                                                        */
} swin_status;

/* The detail of a failure. Owned by the caller, needs no initialisation, may be NULL wherever it is taken.
 * The layout is final: 512 bytes. */
typedef struct swin_error {
    int32_t status;    /* a swin_status                                               */
    int32_t backend;   /* oneDNN's own status when status is SWIN_ERR_BACKEND, else 0 */
    char message[504]; /* one line, printable ASCII, NUL-terminated; empty on success */
} swin_error;

/* "argument", "no memory", ...; never NULL. Thread-safety: any thread. */
SWIN_API const char *swin_status_string(swin_status status);

/* The version of the loaded library: major * 10000 + minor * 100 + patch. Thread-safety: any thread. */
SWIN_API uint32_t swin_version(void);

/* The same as text, "0.1.0". Thread-safety: any thread. */
SWIN_API const char *swin_version_string(void);

/* SWIN_ABI_VERSION of the loaded library; a program whose header says otherwise must not call on.
 * Thread-safety: any thread. */
SWIN_API uint32_t swin_abi_version(void);

/* The size in bytes that the loaded library gives a struct of this header, by its name, "swin_image"; 0 for any other
 * name and for NULL. For bindings that write structs down a second time: theirs must not be larger where struct_size
 * comes first, and must be equal elsewhere. Thread-safety: any thread. */
SWIN_API size_t swin_struct_size(const char *name);

/* What swin_selftest() found out about one kernel. Strings are static. */
typedef struct swin_selftest_result {
    size_t struct_size;
    const char *kernel; /* "softmax bf16", ...; NULL: there are no more                                 */
    const char *isa;    /* instruction set of the kernel: "plain", "avx2", "avx512", "avx512_bf16", "amx" */
    double error;       /* the largest difference from plain C, in units of what is allowed            */
} swin_selftest_result;

/* Compares kernel number `index` of those that this CPU gets with plain C, on a few numbers; all of them take less than
 * a tenth of a second. Programs that run on CPUs, emulators or compilers nobody tried may ask at their start:
 *
 *     swin_selftest_result r;
 *     for (size_t i = 0; swin_selftest(i, &r, sizeof r, &err) == SWIN_OK && r.kernel != NULL; i++)
 *         ;
 *
 * ends with SWIN_OK where all is well. `struct_size` is sizeof(swin_selftest_result) of the caller.
 * Returns SWIN_OK; INTERNAL, `result` filled too, where the kernel computes something else; ARGUMENT, NO_MEMORY.
 * Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_selftest(size_t index, swin_selftest_result *result, size_t struct_size,
                                                  swin_error *err);

/* ---------------------------------------------------------------------------------------------------------------
 * Configuration: what a Swin Transformer is made of
 */

/* Four nearly always; five in RTMDet's P6 models, whose fifth map has stride 64. */
#define SWIN_MAX_STAGES 5

/* The family of implementations whose arithmetic is reproduced. They differ where a map is no multiple of the window
 * or not larger than it; at sizes where every map is a multiple of the window and larger, all agree. */
typedef enum swin_lineage {
    SWIN_LINEAGE_AUTO = 0,
    SWIN_LINEAGE_DETECTION = 1,   /* Swin-Transformer-Object-Detection, mmdetection, detectron2, Mask2Former, Paddle-
                                     Detection, Hugging Face SwinBackbone: pad after norm1, then roll; window and shift
                                     are kept on small maps                                                          */
    SWIN_LINEAGE_MICROSOFT = 2,   /* Microsoft's classification code: a map not larger than the window shrinks the
                                     window to the map and drops the shift                                            */
    SWIN_LINEAGE_TORCHVISION = 3, /* pads like detection; drops the shift along an axis that is one window long; the
                                     patch grid is floored                                                            */
    SWIN_LINEAGE_TIMM = 4,        /* rolls before it pads; windows clamped per axis from the configured image size    */
    SWIN_LINEAGE_HUGGINGFACE = 5, /* transformers' SwinModel / Swinv2Model                                            */
    SWIN_LINEAGE_MMPRETRAIN = 6   /* mmpretrain classification: a map as large as the window drops the shift          */
} swin_lineage;

/* A configuration. Stages beyond `stages` are zero in every array. Windows are {rows, columns}. */
typedef struct swin_config {
    size_t struct_size;
    int32_t version;              /* 1 or 2: Swin Transformer V1 [V1] or V2 [V2]                                */
    int32_t lineage;              /* a swin_lineage, never AUTO in a model's own configuration                  */
    int32_t patch_size;           /* side of a patch in pixels, 1..64; 4 in every published model               */
    int32_t embed_dim;            /* channels of level 0, C in [V1]; stage s has embed_dim << s                 */
    int32_t stages;               /* 1..SWIN_MAX_STAGES                                                         */
    int32_t depths[SWIN_MAX_STAGES];             /* blocks per stage                                            */
    int32_t heads[SWIN_MAX_STAGES];              /* attention heads per stage; must divide the stage's channels */
    int32_t window[SWIN_MAX_STAGES][2];          /* M in [V1], in tokens                                        */
    int32_t pretrained_window[SWIN_MAX_STAGES][2]; /* V2: window of pre-training; {0,0}: the stage's own window */
    int32_t qkv_bias;             /* 0: the query/key/value projection has no bias (V2: only its key never has) */
    int32_t patch_norm;           /* 0: no LayerNorm after the patch embedding                                  */
    int32_t out_norm;             /* bit s set: level s passes a LayerNorm of its own before it is handed out   */
    int32_t absolute_position[2]; /* grid of the absolute position embedding; {0,0}: none                       */
    int32_t image_size[2];        /* size the model was configured for, where its lineage asks; {0,0}: unknown  */
    int32_t block_norm_period;    /* V2 huge and giant: every n-th block of a stage ends in a norm; 0: none     */
    int32_t block_norm_last;      /* bit s set: the last block of stage s ends in such a norm too               */
    double mlp_ratio;             /* hidden width over channels; 4 in every published model                     */
} swin_config;

/* Fills `config` with a published configuration by the name of its checkpoint file, e.g.
 * "swin_tiny_patch4_window7_224" or "swinv2_base_patch4_window12to16_192to256". Detection lineage, no output norms.
 * `struct_size` is sizeof(swin_config) of the caller.
 * Returns SWIN_OK, or SWIN_ERR_ARGUMENT for an unknown name. Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_config_preset(swin_config *config, size_t struct_size, const char *name,
                                                       swin_error *err);

/* The names that swin_config_preset() knows, in order; NULL from the first index that is too large on. They are static.
 * Thread-safety: any thread. */
SWIN_API const char *swin_config_preset_name(size_t index);

/* ---------------------------------------------------------------------------------------------------------------
 * Model
 */

/* Weights and configuration, immutable once made. Reference-counted inside: sessions keep their model alive. */
typedef struct swin_model swin_model;

/* How the numbers are computed. Softmax, norms and the residual stream are always float32. */
typedef enum swin_precision {
    SWIN_PRECISION_AUTO = 0, /* of a session: the model's; of a model: bf16 on a CPU with AMX-BF16, else float32 */
    SWIN_PRECISION_F32 = 1,  /* relative L2 error per level <= 1e-5                                              */
    SWIN_PRECISION_BF16 = 2  /* bf16 operands, float32 sums: relative L2 error <= 1.5e-2                         */
} swin_precision;

/* Whether level norms are applied. */
typedef enum swin_out_norm {
    SWIN_OUT_NORM_AUTO = 0, /* where the file has them                                      */
    SWIN_OUT_NORM_ON = 1,   /* on every level; identity weight and bias where the file has none */
    SWIN_OUT_NORM_OFF = 2
} swin_out_norm;

/* What to take from the caller rather than from the file. All zero (or a NULL pointer) means: as recognised. */
typedef struct swin_model_params {
    size_t struct_size;
    int32_t version;                               /* 1 or 2: refuse a file of the other version           */
    int32_t lineage;                               /* a swin_lineage                                       */
    int32_t window[SWIN_MAX_STAGES][2];            /* {rows, columns} per stage; position biases follow    */
    int32_t pretrained_window[SWIN_MAX_STAGES][2]; /* V2 only                                              */
    int32_t image_size[2];                         /* {height, width} for lineages that clamp windows by it */
    int32_t out_norm;                              /* a swin_out_norm                                      */
    int32_t precision; /* a swin_precision: packed at once, and what AUTO means for the model's sessions; another one
                          is packed when a session first asks for it                                        */
    uint64_t max_header_bytes; /* limit on the file's header; 0: 100 MiB                                     */
    const char *prefix; /* which Swin Transformer of a file that holds several: what stands before the names of its
                           tensors, e.g. "teacher.backbone."; NULL: the only one                             */
} swin_model_params;

/* Sets every field to its default. `struct_size` is sizeof(swin_model_params) of the caller. NULL is fine.
 * Thread-safety: any thread. */
SWIN_API void swin_model_params_init(swin_model_params *params, size_t struct_size);

/* Opens a safetensors checkpoint (or a Hugging Face *.safetensors.index.json with its shards), recognises its naming,
 * lineage and configuration from tensor names and shapes, checks every tensor and packs the weights.
 *
 * What tensors cannot say (windows of a V2 file without buffers, an image size) is taken from `params`, else from a
 * config.json beside the file, else from the file's published name; swin_model_get_info() tells where windows come
 * from.
 *
 * `params` may be NULL. On success *model is a new model to be released with swin_model_destroy(); on failure it is
 * NULL. The file stays open (not mapped) while the model lives and must not be overwritten in place meanwhile.
 * Returns SWIN_OK, or ARGUMENT, IO, FORMAT, UNSUPPORTED, MISMATCH, LIMIT, NO_MEMORY, BACKEND.
 * Thread-safety: any thread. Cost: reads each weight once. */
SWIN_API SWIN_NODISCARD swin_status swin_model_open(const char *path, const swin_model_params *params,
                                                    swin_model **model, swin_error *err);

/* Makes a model of any configuration with pseudo-random weights, the same for the same configuration and seed on every
 * machine. For tests, benchmarks and demonstrations. `params` may be NULL; only its `precision` counts.
 * On success *model is to be released with swin_model_destroy(); on failure it is NULL.
 * Returns SWIN_OK, ARGUMENT, LIMIT, NO_MEMORY, BACKEND. Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_model_create_random(const swin_config *config, uint64_t seed,
                                                             const swin_model_params *params, swin_model **model,
                                                             swin_error *err);

/* Releases a model. NULL is fine; sessions made from it go on working. Thread-safety: any thread. */
SWIN_API void swin_model_destroy(swin_model *model);

/* Copies the model's configuration. `struct_size` is sizeof(swin_config) of the caller.
 * Returns SWIN_OK or SWIN_ERR_ARGUMENT. Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_model_config(const swin_model *model, swin_config *config, size_t struct_size,
                                                      swin_error *err);

/* What was recognised. Strings belong to the model. */
typedef struct swin_model_info {
    size_t struct_size;
    const char *name;            /* nearest published configuration, or ""                                     */
    const char *dialect;         /* naming: "microsoft", "detection", "mmdetection", "timm", ..., "random"     */
    const char *lineage;         /* "detection", "microsoft", "torchvision", "timm", "huggingface", "mmpretrain" */
    const char *lineage_reason;  /* why this lineage                                                            */
    const char *window_reason;   /* where the windows come from                                                 */
    const char *prefix;          /* what stands before every tensor name, e.g. "backbone."                      */
    const char *dtype;           /* "F32", "F16", "BF16", "F64", or "mixed"                                     */
    uint64_t parameter_count;    /* of the backbone as used                                                     */
    uint64_t used_count;         /* tensors used                                                                */
    uint64_t ignored_count;      /* derived buffers and classifier heads                                        */
    uint64_t foreign_count;      /* tensors beside the backbone: neck, decoder, detection head                  */
    uint64_t unknown_count;      /* tensors within the backbone that libswin does not know                      */
    uint64_t nonfinite_count;    /* NaN or infinite weights seen so far                                         */
} swin_model_info;

/* Fills `info`. `struct_size` is sizeof(swin_model_info) of the caller. Strings live as long as the model.
 * Returns SWIN_OK or SWIN_ERR_ARGUMENT. Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_model_get_info(const swin_model *model, swin_model_info *info,
                                                        size_t struct_size, swin_error *err);

/* What became of a tensor of the file. */
typedef enum swin_tensor_use {
    SWIN_TENSOR_USED = 0,
    SWIN_TENSOR_IGNORED = 1,
    SWIN_TENSOR_FOREIGN = 2,
    SWIN_TENSOR_UNKNOWN = 3
} swin_tensor_use;

/* The name of the index-th tensor of that use, or NULL from the first index that is too large on. Lives as long as the
 * model. Thread-safety: any thread. */
SWIN_API const char *swin_model_tensor_name(const swin_model *model, swin_tensor_use use, size_t index);

/* One level's map. The layout of this struct is final. */
typedef struct swin_output_info {
    int32_t level;    /* 0 .. stages - 1                            */
    int32_t stride;   /* pixels per map cell: patch_size << level   */
    int32_t channels; /* embed_dim << level                         */
    int32_t height;   /* rows: ceil(height / patch_size), then ceil halves (torchvision floors the first) */
    int32_t width;    /* columns, likewise                          */
    int32_t normed;   /* 1: the level passes a LayerNorm            */
} swin_output_info;

/* The maps that an image of height x width pixels gives, one entry per stage; `infos` has room for SWIN_MAX_STAGES,
 * entries beyond the model's stages are zeroed. Any size from 1 x 1 on works (torchvision lineage: from one patch on).
 * Returns SWIN_OK, ARGUMENT, or LIMIT where the maps would not fit in memory's address range.
 * Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_model_output_info(const swin_model *model, int32_t height, int32_t width,
                                                           swin_output_info *infos, swin_error *err);

/* ---------------------------------------------------------------------------------------------------------------
 * Session
 */

/* Scratch memory and threads for one worker. */
typedef struct swin_session swin_session;

typedef struct swin_session_params {
    size_t struct_size;
    int32_t precision; /* a swin_precision; AUTO: the one that the model was opened with                    */
    int32_t threads;   /* threads that work in a run, the calling one included; 0: one per CPU available    */
    int32_t profile;   /* 1: measure where a run spends its time, for swin_session_get_profile()            */
} swin_session_params;

/* Sets every field to its default. `struct_size` is sizeof(swin_session_params) of the caller. NULL is fine.
 * Thread-safety: any thread. */
SWIN_API void swin_session_params_init(swin_session_params *params, size_t struct_size);

/* Makes a session; `params` may be NULL. On success *session is to be released with swin_session_destroy(), on
 * failure it is NULL. Packs weights when this precision is new to the model.
 * Returns SWIN_OK, ARGUMENT, NO_MEMORY, IO, BACKEND. Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_session_create(const swin_model *model, const swin_session_params *params,
                                                        swin_session **session, swin_error *err);

/* Releases a session; NULL is fine. Thread-safety: one thread at a time. */
SWIN_API void swin_session_destroy(swin_session *session);

/* How pixels lie in memory. */
typedef enum swin_pixel_format {
    SWIN_PIXEL_RGB8 = 1,      /* uint8, interleaved R G B                                                   */
    SWIN_PIXEL_BGR8 = 2,      /* uint8, interleaved B G R (OpenCV)                                          */
    SWIN_PIXEL_F32_PLANAR = 3 /* float32, three planes R, G, B, already normalised: taken as they are       */
} swin_pixel_format;

/* One image, borrowed for the time of the call. Grayscale and alpha are the reader's job. */
typedef struct swin_image {
    size_t struct_size;
    const void *data;       /* first pixel of the top row                                                       */
    int32_t format;         /* a swin_pixel_format                                                              */
    int32_t height;         /* rows, >= 1                                                                       */
    int32_t width;          /* columns, >= 1                                                                    */
    int32_t canvas_height;  /* 0, or >= height: zeros (of the normalised image) are added below                 */
    int32_t canvas_width;   /* 0, or >= width: likewise to the right                                            */
    ptrdiff_t row_stride;   /* bytes from one row to the next, negative where they lie upside down; 0: dense     */
    ptrdiff_t plane_stride; /* F32_PLANAR: bytes from one plane to the next; 0: dense, height * |row_stride|    */
    float mean[3];          /* 8-bit formats: subtracted, in 0-255 units, in the order R, G, B                  */
    float std[3];           /* 8-bit formats: divided by afterwards, likewise                                   */
} swin_image;

/* Sets every field to its default: RGB8, dense, ImageNet's mean 123.675, 116.28, 103.53 and std 58.395, 57.12, 57.375.
 * `struct_size` is sizeof(swin_image) of the caller. NULL is fine. Thread-safety: any thread. */
SWIN_API void swin_image_init(swin_image *image, size_t struct_size);

typedef enum swin_layout {
    SWIN_LAYOUT_NCHW = 0,
    SWIN_LAYOUT_NHWC = 1
} swin_layout;

/* Where the maps go. A level is computed into data[level] when that is not NULL; stages after the last chosen level are
 * not computed at all. */
typedef struct swin_maps {
    size_t struct_size;
    int32_t layout;                   /* a swin_layout, for all levels                                          */
    int32_t reserved;                 /* 0                                                                      */
    float *data[SWIN_MAX_STAGES];     /* caller-owned float32 [N, C, H, W] or [N, H, W, C], or NULL             */
    size_t capacity[SWIN_MAX_STAGES]; /* how many floats there are behind data[level]; at least N * C * H * W   */
} swin_maps;

/* Zeroes every field. `struct_size` is sizeof(swin_maps) of the caller. NULL is fine. Thread-safety: any thread. */
SWIN_API void swin_maps_init(swin_maps *maps, size_t struct_size);

/* Computes the chosen maps of `count` >= 1 images whose canvases (image size where no canvas is given) are equal: the
 * network of [V1] 3.1 and 3.2, or [V2] 3.2 and 3.3, padded, shifted and masked as the model's lineage does it.
 *
 * Each image's maps are bit for bit what a run of that image alone gives, whatever the batch, the thread count or the
 * session. Images and maps must not overlap; maps that overlap each other are refused. After a failure the contents of
 * the maps are undefined and the session can be used again.
 * Returns SWIN_OK, ARGUMENT, LIMIT, NO_MEMORY, BACKEND, or STATE when another thread is inside the session.
 * Thread-safety: one thread at a time per session. Cost: for a known image size libswin allocates nothing; what
 * oneDNN needs within a product, 300 bytes with AVX-512, some tens of kilobytes without, it takes and gives back. */
SWIN_API SWIN_NODISCARD swin_status swin_session_run(swin_session *session, const swin_image *images, size_t count,
                                                     const swin_maps *maps, swin_error *err);

/* What a session is. Strings belong to the session. */
typedef struct swin_session_info {
    size_t struct_size;
    int32_t precision;      /* SWIN_PRECISION_F32 or SWIN_PRECISION_BF16: what AUTO became           */
    int32_t threads;        /* threads that work in a run                                            */
    const char *kernels;    /* instruction set of libswin's own kernels: "plain", "avx2", "avx512"... */
    const char *backend;    /* "oneDNN 2.6.3"                                                        */
    const char *matmul;     /* the matrix kernel: oneDNN's name, e.g. "brg:avx512_core", or "swin:..." */
    uint64_t weight_bytes;  /* packed weights, shared with other sessions of this precision          */
    uint64_t scratch_bytes; /* this session's own memory at present                                  */
} swin_session_info;

/* Fills `info`. `struct_size` is sizeof(swin_session_info) of the caller.
 * Returns SWIN_OK or SWIN_ERR_ARGUMENT. Thread-safety: one thread at a time. */
SWIN_API SWIN_NODISCARD swin_status swin_session_get_info(const swin_session *session, swin_session_info *info,
                                                          size_t struct_size, swin_error *err);

/* Where the last run spent its time; all zero unless the session was made with `profile`. */
typedef struct swin_profile {
    size_t struct_size;
    double total_ms;                        /* wall time of the run                                       */
    double patch_embed_ms;                  /* wall time per part, summing to about the total             */
    double blocks_ms[SWIN_MAX_STAGES];
    double patch_merge_ms[SWIN_MAX_STAGES]; /* entry s: from stage s to s + 1                             */
    double output_ms[SWIN_MAX_STAGES];      /* level norm and layout                                      */
    double gflop[SWIN_MAX_STAGES + 1];      /* 1e9 multiplies and adds of the matrix products: entry 0 patch embedding,
                                               entry s + 1 stage s with the merge that follows it         */
} swin_profile;

/* Fills `profile`. `struct_size` is sizeof(swin_profile) of the caller.
 * Returns SWIN_OK or SWIN_ERR_ARGUMENT. Thread-safety: one thread at a time. */
SWIN_API SWIN_NODISCARD swin_status swin_session_get_profile(const swin_session *session, swin_profile *profile,
                                                             size_t struct_size, swin_error *err);

/* ---------------------------------------------------------------------------------------------------------------
 * Looking inside: what a block attends to
 *
 * A block cuts the map of its stage into windows of T tokens, and in each head every token of a window (the query)
 * spreads a weight of 1 over all tokens of the window (the keys): the softmax of [V1] equation 4, [V2] equation 2. A
 * run keeps none of these weights, so a run does not pay for what follows; a request computes an image up to the block,
 * and the wanted weights there.
 *
 *     swin_attention_request request;
 *     swin_attention_request_init(&request, sizeof request);
 *     request.stage = 2;
 *     request.block = 5;
 *     request.query[0] = 120;
 *     request.query[1] = 200;
 *     swin_attention_info info;
 *     if (swin_model_attention_info(model, height, width, &request, &info, sizeof info, &err) != SWIN_OK)
 *         return fail(&err);
 *     swin_attention attention;
 *     swin_attention_init(&attention, sizeof attention);
 *     attention.weights = malloc(info.weight_count * sizeof(float));
 *     attention.weight_capacity = info.weight_count;
 *     if (swin_session_attention(session, &image, &request, &attention, &err) != SWIN_OK)
 *         return fail(&err);
 */

/* How the weights are laid out. */
typedef enum swin_attention_view {
    SWIN_ATTENTION_ON_MAP = 0,   /* of one query, laid out on the stage's map: [heads, rows, columns]. Roll and padding
                                    are undone; cells that are not in the query's window hold 0                      */
    SWIN_ATTENTION_IN_WINDOW = 1 /* of all queries of a window, or of every window: [windows, heads, T, T], query then
                                    key, as the published implementations compute them, slots of padding included    */
} swin_attention_view;

#define SWIN_HEAD_MEAN (-1)   /* one matrix (or map): the mean over the heads                */
#define SWIN_HEAD_EACH (-2)   /* one for each head                                           */
#define SWIN_WINDOW_EACH (-1) /* all windows                                                 */

/* Whose weights are asked for. */
typedef struct swin_attention_request {
    size_t struct_size;
    int32_t stage;    /* 0 .. stages - 1                                                                         */
    int32_t block;    /* 0 .. depths[stage] - 1                                                                  */
    int32_t head;     /* 0 .. heads[stage] - 1, SWIN_HEAD_MEAN or SWIN_HEAD_EACH                                 */
    int32_t view;     /* a swin_attention_view                                                                   */
    int32_t query[2]; /* ON_MAP: {row, column} of a pixel of the image (of its canvas); the query is the token of
                         the cell that the pixel lies in                                                         */
    int32_t window;   /* IN_WINDOW: 0 .. windows - 1, numbered row by row after the roll, or SWIN_WINDOW_EACH    */
    int32_t reserved; /* 0                                                                                       */
} swin_attention_request;

/* Zeroes every field but `head`: SWIN_HEAD_MEAN. `struct_size` is sizeof(swin_attention_request) of the caller. NULL is
 * fine. Thread-safety: any thread. */
SWIN_API void swin_attention_request_init(swin_attention_request *request, size_t struct_size);

/* What a request comes to. Pairs are {rows, columns}. */
typedef struct swin_attention_info {
    size_t struct_size;
    int32_t stride;       /* pixels per cell of the stage's map                                             */
    int32_t heads;        /* of the stage                                                                   */
    int32_t map[2];       /* the stage's map                                                                */
    int32_t window[2];    /* of this image: lineages make windows smaller on small maps; T is the product   */
    int32_t shift[2];     /* of this block: the map is rolled up and left by so many cells; {0, 0}: not     */
    int32_t windows[2];   /* how many there are                                                             */
    int32_t cell[2];      /* ON_MAP: where the query stands on the map, else {-1, -1}                       */
    int32_t query_window; /* ON_MAP: the number of its window, else -1                                      */
    int32_t query_slot;   /* ON_MAP: its place 0 .. T - 1 in that window, row by row, else -1               */
    size_t weight_count;  /* floats that the weights take                                                   */
    size_t token_count;   /* entries that the tokens take                                                   */
} swin_attention_info;

/* Fills `info` for images whose canvas is height x width pixels. `struct_size` is sizeof(swin_attention_info) of the
 * caller.
 * Returns SWIN_OK; ARGUMENT where there is no such stage, block, head, window or pixel (in the torchvision lineage also
 * where the pixel lies beyond the last whole patch); LIMIT where the map or the weights would not fit in memory's
 * address range. Thread-safety: any thread. */
SWIN_API SWIN_NODISCARD swin_status swin_model_attention_info(const swin_model *model, int32_t height, int32_t width,
                                                              const swin_attention_request *request,
                                                              swin_attention_info *info, size_t struct_size,
                                                              swin_error *err);

/* Where the weights go: memory of the caller. */
typedef struct swin_attention {
    size_t struct_size;
    float *weights;         /* as the view says; heads is 1 unless EACH is asked for, so is windows              */
    size_t weight_capacity; /* how many floats there are behind weights; at least weight_count                   */
    int32_t *tokens;        /* NULL, or [windows, T]: the cell in each slot, row * map columns + column, or -1
                               where it is padding; ON_MAP: of the query's window                                */
    size_t token_capacity;  /* how many entries there are behind tokens; at least token_count                    */
} swin_attention;

/* Zeroes every field. `struct_size` is sizeof(swin_attention) of the caller. NULL is fine.
 * Thread-safety: any thread. */
SWIN_API void swin_attention_init(swin_attention *attention, size_t struct_size);

/* Computes the weights that a request asks for of one image.
 *
 * The weights of a query sum to 1 over the T keys of its window. Padding takes part as the model computes it: in most
 * lineages keys of padding get weight, so that what is left on the map sums to less than 1. Pairs that the mask of a
 * shifted window keeps apart have weights of about e^-100.
 *
 * Projections are the session's, in its precision; scores and softmax are computed in double precision. A float32
 * session's weights are within a relative L2 distance of 1e-5 of the reference implementation's. They do not depend on
 * the thread count, and a run before or after gives the same maps. Image, weights and tokens must not overlap. After a
 * failure the contents of weights and tokens are undefined and the session can be used again.
 * Returns SWIN_OK, ARGUMENT, LIMIT, NO_MEMORY, BACKEND, or STATE when another thread is inside the session.
 * Thread-safety: one thread at a time per session. Cost: a run up to that block; memory for the time of the call. */
SWIN_API SWIN_NODISCARD swin_status swin_session_attention(swin_session *session, const swin_image *image,
                                                           const swin_attention_request *request,
                                                           const swin_attention *attention, swin_error *err);

#ifdef __cplusplus
}
#endif

#endif
