/* SPDX-License-Identifier: MIT */
/* Files that must open, and a corpus of files that must not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "tensor_file.h"
#include "weights/advice.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

#define LIMIT SW_DEFAULT_MAX_HEADER_BYTES

static void must_open(const char *path, sw_checkpoint *checkpoint)
{
    swin_error err = {0};
    if (sw_checkpoint_open(path, LIMIT, checkpoint, &err) != SWIN_OK)
        fail_msg("%s", err.message);
}

/* Opens a file that must be refused with this status and, somewhere in the message, these words. */
static void must_fail(const char *path, uint64_t limit, swin_status expected, const char *words)
{
    sw_checkpoint checkpoint;
    swin_error err = {0};
    const swin_status status = sw_checkpoint_open(path, limit, &checkpoint, &err);
    if (status != expected || err.status != (int32_t)expected || strstr(err.message, words) == NULL)
        fail_msg("status %d, expected %d with \"%s\": %s", status, expected, words, err.message);
    assert_null(checkpoint.files);
    assert_null(checkpoint.table.tensors);
    assert_int_equal(memory_live_blocks(), 0);
}

#define TENSOR(name, dtype, shape, begin, end)                                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void broken_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes;
        swin_status status;
        const char *words;
    } cases[] = {
        /* Not JSON, or not the JSON that it should be. */
        {"{", 0, SWIN_ERR_FORMAT, "cut"},
        {"{ ", 0, SWIN_ERR_FORMAT, "broken"},
        {"[]", 0, SWIN_ERR_FORMAT, "begin with {"},
        {" {}", 0, SWIN_ERR_FORMAT, "begin with {"},
        {"{}x", 0, SWIN_ERR_FORMAT, "broken"},
        {"{}{}", 0, SWIN_ERR_FORMAT, "broken"},
        {"{\"a\":}", 0, SWIN_ERR_FORMAT, "broken"},
        {"{\"a\":1}", 0, SWIN_ERR_FORMAT, "\"a\""},
        {"{\"a\":[]}", 0, SWIN_ERR_FORMAT, "\"a\""},
        {"{\"a\":{}}", 0, SWIN_ERR_FORMAT, "dtype"},
        {"{\"a\":null}", 0, SWIN_ERR_FORMAT, "dtype"},
        /* Names. */
        {"{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("a", "F32", "[1]", "4", "8") "}", 8, SWIN_ERR_FORMAT,
         "broken"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SWIN_ERR_FORMAT,
         "broken"},
        {"{" TENSOR("a\\u0000b", "F32", "[1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        {"{" TENSOR("a\xff", "F32", "[1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        {"{" TENSOR("a\xc0\x80", "F32", "[1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        {"{" TENSOR("a\xed\xa0\x80", "F32", "[1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        {"{" TENSOR("a\\ud800", "F32", "[1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        {"{" TENSOR("a\n", "F32", "[1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        /* Types. */
        {"{" TENSOR("a", "F33", "[1]", "0", "4") "}", 4, SWIN_ERR_UNSUPPORTED, "F33"},
        {"{" TENSOR("a", "", "[1]", "0", "4") "}", 4, SWIN_ERR_UNSUPPORTED, "\"a\""},
        {"{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SWIN_ERR_FORMAT, "dtype"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SWIN_ERR_FORMAT, "dtype"},
        /* Shapes. */
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, SWIN_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "F32", "1", "0", "4") "}", 4, SWIN_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "F32", "[1.0]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "F32", "[-1]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "F32", "[\"1\"]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "F32", "[[1]]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "nests"},
        {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, SWIN_ERR_UNSUPPORTED, "dimensions"},
        {"{" TENSOR("a", "F32", "[4294967296,4294967296]", "0", "0") "}", 0, SWIN_ERR_FORMAT, "fewer than 2^64"},
        {"{" TENSOR("a", "F32", "[9223372036854775807]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "size"},
        {"{" TENSOR("a", "F32", "[4611686018427387904]", "0", "0") "}", 0, SWIN_ERR_FORMAT, "size"},
        {"{" TENSOR("a", "F32", "[9223372036854775808]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "broken"},
        {"{" TENSOR("a", "F32", "[2]", "0", "4") "}", 8, SWIN_ERR_FORMAT, "size"},
        {"{" TENSOR("a", "F32", "[]", "0", "8") "}", 8, SWIN_ERR_FORMAT, "size"},
        {"{" TENSOR("a", "F32", "[0]", "0", "4") "}", 4, SWIN_ERR_FORMAT, "size"},
        {"{" TENSOR("a", "F4", "[3]", "0", "1") "}", 1, SWIN_ERR_FORMAT, "size"},
        /* Offsets. */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, SWIN_ERR_FORMAT, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, SWIN_ERR_FORMAT, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, SWIN_ERR_FORMAT, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{}}}", 4, SWIN_ERR_FORMAT, "data_offsets"},
        {"{" TENSOR("a", "F32", "[1]", "0", "4.0") "}", 4, SWIN_ERR_FORMAT, "data_offsets"},
        {"{" TENSOR("a", "F32", "[1]", "4", "0") "}", 4, SWIN_ERR_FORMAT, "4 to 0"},
        {"{" TENSOR("a", "F32", "[1]", "-4", "0") "}", 4, SWIN_ERR_FORMAT, "-4 to 0"},
        {"{" TENSOR("a", "F32", "[1]", "0", "4") "}", 3, SWIN_ERR_FORMAT, "0 to 4"},
        {"{" TENSOR("a", "F32", "[1]", "4", "8") "}", 4, SWIN_ERR_FORMAT, "4 to 8"},
        {"{" TENSOR("a", "F32", "[1]", "9223372036854775804", "9223372036854775807") "}", 4, SWIN_ERR_FORMAT, "range"},
        {"{" TENSOR("a", "F32", "[1]", "9223372036854775808", "9223372036854775812") "}", 4, SWIN_ERR_FORMAT,
         "broken"},
        {"{" TENSOR("a", "F32", "[1]", "18446744073709551612", "18446744073709551616") "}", 4, SWIN_ERR_FORMAT,
         "broken"},
        {"{" TENSOR("a", "F32", "[1]", "0", "1e1") "}", 16, SWIN_ERR_FORMAT, "data_offsets"},
        {"{" TENSOR("a", "F32", "[2]", "0", "8") "," TENSOR("b", "F32", "[1]", "4", "8") "}", 8, SWIN_ERR_FORMAT,
         "overlap"},
        {"{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("b", "F32", "[1]", "0", "4") "}", 8, SWIN_ERR_FORMAT,
         "overlap"},
        {"{" TENSOR("a", "F32", "[4]", "0", "16") "," TENSOR("b", "F32", "[1]", "4", "8") "," TENSOR("c", "F32", "[1]",
         "8", "12") "}", 16, SWIN_ERR_FORMAT, "overlap"},
        /* Metadata. */
        {"{\"__metadata__\":[]}", 0, SWIN_ERR_FORMAT, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, SWIN_ERR_FORMAT, "__metadata__"},
        {"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, SWIN_ERR_FORMAT, "__metadata__"},
        {"{\"__metadata__\":{\"a\":{\"b\":{}}}}", 0, SWIN_ERR_FORMAT, "nests"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t length = strlen(cases[i].header);
        write_raw(in_directory("bad"), cases[i].header, length, length, cases[i].data_bytes);
        must_fail(in_directory("bad"), LIMIT, cases[i].status, cases[i].words);
    }
}

static void absurd_lengths_are_refused(void **state)
{
    (void)state;
    static const char header[] = "{" TENSOR("a", "F32", "[1]", "0", "4") "}";
    const uint64_t length = sizeof header - 1;
    const struct {
        uint64_t stated;
        swin_status status;
    } cases[] = {
        {UINT64_MAX, SWIN_ERR_FORMAT}, {UINT64_MAX - 7, SWIN_ERR_FORMAT}, {UINT64_C(1) << 63, SWIN_ERR_FORMAT},
        {0, SWIN_ERR_FORMAT},          {1, SWIN_ERR_FORMAT},              {length + 5, SWIN_ERR_FORMAT},
        {length - 1, SWIN_ERR_FORMAT}, {length + 4, SWIN_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_raw(in_directory("bad"), header, (size_t)length, cases[i].stated, 4);
        must_fail(in_directory("bad"), LIMIT, cases[i].status, "");
    }
    /* The limit is on the header, to the byte. */
    write_raw(in_directory("good"), header, (size_t)length, length, 4);
    must_fail(in_directory("good"), length - 1, SWIN_ERR_LIMIT, "max_header_bytes");
    sw_checkpoint checkpoint;
    assert_int_equal(sw_checkpoint_open(in_directory("good"), length, &checkpoint, NULL), SWIN_OK);
    sw_checkpoint_close(&checkpoint);
}

/* Cut after any byte at all, a file is refused. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    static const char header[] = "{" TENSOR("a", "F32", "[2]", "0", "8") "," TENSOR("b", "F16", "[3]", "8", "14") "}";
    unsigned char whole[512] = {0};
    const uint64_t length = sizeof header - 1;
    memcpy(whole, &length, 8);
    memcpy(whole + 8, header, length);
    const size_t size = 8 + length + 14;
    for (size_t cut = 0; cut < size; cut++) {
        write_bytes(in_directory("cut"), whole, cut);
        must_fail(in_directory("cut"), LIMIT, SWIN_ERR_FORMAT, "");
    }
    sw_checkpoint checkpoint;
    write_bytes(in_directory("cut"), whole, size);
    must_open(in_directory("cut"), &checkpoint);
    sw_checkpoint_close(&checkpoint);
}

/* Text that asks for far more memory than it takes. */
static void bombs_are_refused(void **state)
{
    (void)state;
    const size_t size = 4 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '[', size);
    text[0] = '{';
    write_raw(in_directory("bad"), text, size, size, 0);
    must_fail(in_directory("bad"), LIMIT, SWIN_ERR_FORMAT, "nests");

    memcpy(text, "{\"a\":[", 6);
    for (size_t i = 6; i < size; i += 2)
        memcpy(text + i, "0,", 2);
    write_raw(in_directory("bad"), text, size, size, 0);
    must_fail(in_directory("bad"), LIMIT, SWIN_ERR_LIMIT, "values");
    free(text);
}

static void accepted_oddities(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes;
        size_t count;
    } cases[] = {
        {"{}", 0, 0},
        {"{}                ", 0, 0},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, 0},
        {"{\"__metadata__\":{}," TENSOR("a", "F32", "[1]", "0", "4") "}", 4, 1},
        /* Bytes behind the last tensor, gaps, and data that is not aligned. */
        {"{" TENSOR("a", "F32", "[1]", "0", "4") "}", 8, 1},
        {"{" TENSOR("a", "F32", "[1]", "3", "7") "}", 7, 1},
        {"{" TENSOR("b", "F32", "[1]", "0", "4") "," TENSOR("a", "F32", "[1]", "9", "13") "}", 16, 2},
        /* No elements: no overlap either. */
        {"{" TENSOR("a", "F32", "[0]", "0", "0") "," TENSOR("b", "F32", "[2]", "0", "8") "}", 8, 2},
        {"{" TENSOR("a", "F32", "[0,9223372036854775807]", "0", "0") "}", 0, 1},
        {"{" TENSOR("a", "I64", "[]", "0", "8") "}", 8, 1},
        {"{" TENSOR("a", "BOOL", "[3]", "0", "3") "," TENSOR("b", "F8_E4M3", "[1]", "3", "4") ","
         TENSOR("c", "F4", "[4]", "4", "6") "," TENSOR("d", "C64", "[1]", "6", "14") "}", 14, 4},
        {"{" TENSOR("\xc3\xa9\\u00e9", "F32", "[1]", "0", "4") "}", 4, 1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":[1]}}", 4, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sw_checkpoint checkpoint;
        const size_t length = strlen(cases[i].header);
        write_raw(in_directory("good"), cases[i].header, length, length, cases[i].data_bytes);
        must_open(in_directory("good"), &checkpoint);
        assert_int_equal(checkpoint.table.count, cases[i].count);
        sw_checkpoint_close(&checkpoint);
    }
}

static void values_of_every_weight_type_are_read(void **state)
{
    (void)state;
    static const float f32[5] = {1.0f, -2.0f, 0.5f, 3.0f, -0.25f};
    static const double f64[5] = {1.0, -2.0, 0.5, 3.0, -0.25};
    static const uint16_t f16[5] = {0x3c00, 0xc000, 0x3800, 0x4200, 0xb400};
    static const uint16_t bf16[5] = {0x3f80, 0xc000, 0x3f00, 0x4040, 0xbe80};
    static const unsigned char odd[1] = {0};
    const uint64_t five = 5, one = 1;
    tensor_file file = {0};
    tensor_file_add(&file, "odd", "U8", 1, &one, odd, 1); /* so that nothing after it is aligned */
    tensor_file_add(&file, "f16", "F16", 1, &five, f16, sizeof f16);
    tensor_file_add(&file, "f32", "F32", 1, &five, f32, sizeof f32);
    tensor_file_add(&file, "bf16", "BF16", 1, &five, bf16, sizeof bf16);
    tensor_file_add(&file, "f64", "F64", 1, &five, f64, sizeof f64);
    tensor_file_write(&file, in_directory("types"));
    tensor_file_free(&file);

    sw_checkpoint checkpoint;
    must_open(in_directory("types"), &checkpoint);
    static const char *const names[] = {"f16", "f32", "bf16", "f64"};
    for (int i = 0; i < 4; i++) {
        const sw_tensor *tensor = sw_tensor_table_find(&checkpoint.table, names[i]);
        assert_non_null(tensor);
        for (uint64_t first = 0; first <= 5; first++) {
            for (size_t count = 0; first + count <= 5; count++) {
                float values[6] = {0};
                values[count] = 77.0f;
                assert_int_equal(sw_checkpoint_read(&checkpoint, tensor, first, count, values, NULL), SWIN_OK);
                assert_memory_equal(values, f32 + first, count * sizeof *f32);
                assert_true(values[count] == 77.0f);
            }
        }
    }
    assert_null(sw_tensor_table_find(&checkpoint.table, "f3"));
    assert_null(sw_tensor_table_find(&checkpoint.table, "f320"));
    sw_checkpoint_close(&checkpoint);
}

/* More values than go through one step of the conversion. */
static void long_tensors_of_doubles_are_read(void **state)
{
    (void)state;
    const uint64_t count = 5000;
    double *values = malloc(count * sizeof *values);
    float *read = malloc(count * sizeof *read);
    assert_non_null(values);
    assert_non_null(read);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (double)i / 3.0;
    tensor_file file = {0};
    tensor_file_add(&file, "a", "F64", 1, &count, values, count * sizeof *values);
    tensor_file_write(&file, in_directory("long"));
    tensor_file_free(&file);
    sw_checkpoint checkpoint;
    must_open(in_directory("long"), &checkpoint);
    assert_int_equal(sw_checkpoint_read(&checkpoint, checkpoint.table.tensors, 0, count, read, NULL), SWIN_OK);
    for (uint64_t i = 0; i < count; i++)
        assert_true(read[i] == (float)values[i]);
    /* Its end is cut off after some parts have been read. */
    assert_int_equal(truncate(in_directory("long"), 30000), 0);
    assert_int_equal(sw_checkpoint_read(&checkpoint, checkpoint.table.tensors, 0, count, read, NULL), SWIN_ERR_IO);
    sw_checkpoint_close(&checkpoint);
    free(values);
    free(read);
}

static void a_file_that_shrinks_or_changes_gives_a_status(void **state)
{
    (void)state;
    static const float data[1024] = {1.0f};
    tensor_file file = {0};
    tensor_file_add_f32(&file, "a", data, 1, 1024);
    tensor_file_write(&file, in_directory("changing"));
    tensor_file_free(&file);

    sw_checkpoint checkpoint;
    float values[1024];
    swin_error err = {0};
    must_open(in_directory("changing"), &checkpoint);
    const sw_tensor *tensor = checkpoint.table.tensors;
    assert_int_equal(sw_checkpoint_check_unchanged(&checkpoint, tensor, NULL), SWIN_OK);
    assert_int_equal(truncate(in_directory("changing"), 200), 0);
    assert_int_equal(sw_checkpoint_read(&checkpoint, tensor, 0, 1024, values, &err), SWIN_ERR_IO);
    assert_non_null(strstr(err.message, "shrunk"));
    err = (swin_error){0};
    assert_int_equal(sw_checkpoint_check_unchanged(&checkpoint, tensor, &err), SWIN_ERR_IO);
    assert_non_null(strstr(err.message, "changed"));
    sw_checkpoint_close(&checkpoint);

    /* The same size again, but written to: seconds or a nanosecond later. */
    tensor_file_add_f32(&file, "a", data, 1, 1024);
    tensor_file_write(&file, in_directory("changing"));
    tensor_file_free(&file);
    static const struct timespec opened[2] = {{7, 7}, {7, 7}}, written[][2] = {{{8, 7}, {8, 7}}, {{7, 8}, {7, 8}}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(utimensat(AT_FDCWD, in_directory("changing"), opened, 0), 0);
        must_open(in_directory("changing"), &checkpoint);
        assert_int_equal(utimensat(AT_FDCWD, in_directory("changing"), written[i], 0), 0);
        err = (swin_error){0};
        assert_int_equal(sw_checkpoint_check_unchanged(&checkpoint, checkpoint.table.tensors, &err), SWIN_ERR_IO);
        assert_non_null(strstr(err.message, "written"));
        sw_checkpoint_close(&checkpoint);
    }
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(in_directory("pipe"), 0600), 0);
    must_fail(in_directory("missing"), LIMIT, SWIN_ERR_IO, "No such file");
    must_fail(in_directory(""), LIMIT, SWIN_ERR_IO, "directory");
    must_fail(in_directory("pipe"), LIMIT, SWIN_ERR_IO, "pipe");
    must_fail("/dev/zero", LIMIT, SWIN_ERR_IO, "device");
    must_fail("", LIMIT, SWIN_ERR_IO, "No such file");
    write_bytes(in_directory("empty"), "", 0);
    must_fail(in_directory("empty"), LIMIT, SWIN_ERR_FORMAT, "0 bytes");
}

/* A command that can be typed as it stands; where that cannot be, one to be filled in. */
static void the_command_is_for_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *path, *command;
    } cases[] = {
        {"swin_tiny.pth", "convert swin_tiny.pth swin_tiny.safetensors"},
        {"v1.0/swin", "convert v1.0/swin v1.0/swin.safetensors"},
        {"v1.0/.pth", "convert v1.0/.pth v1.0/.pth.safetensors"},
        {"a.b.c/x.y.bin", "convert a.b.c/x.y.bin a.b.c/x.y.safetensors"},
        {"my weights.pth", "convert 'my weights.pth' 'my weights.safetensors'"},
        {"$HOME;x.pth", "convert '$HOME;x.pth' '$HOME;x.safetensors'"},
        {"it's.pth", "convert 'it'\\''s.pth' 'it'\\''s.safetensors'"},
        {"caf\xc3\xa9.pth", "convert IN OUT.safetensors"},
        {"a\nb.pth", "convert IN OUT.safetensors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_error err = {0};
        assert_int_equal(sw_fail_pickled(cases[i].path, "a pickle", &err), SWIN_ERR_FORMAT);
        const char *found = strstr(err.message, "convert it: python3 -m libswin ");
        assert_non_null(found);
        assert_string_equal(found + strlen("convert it: python3 -m libswin "), cases[i].command);
    }
    /* However long the path is, the message ends with a whole command. */
    for (size_t length = 100; length < 1000; length++) {
        char path[1001];
        swin_error err = {0};
        memset(path, 'x', length);
        path[length] = '\0';
        sw_fail_pickled(path, "a zip archive, as torch.save() writes it", &err);
        assert_true(strlen(err.message) < sizeof err.message - 1);
        assert_string_equal(err.message + strlen(err.message) - 12, ".safetensors");
    }
    assert_int_equal(sw_fail_pickled("x", "a pickle", NULL), SWIN_ERR_FORMAT);
}

static void a_directory_is_looked_into(void **state)
{
    char wanted[512];
    (void)state;
    make_subdirectory("models");
    must_fail(in_directory("models"), LIMIT, SWIN_ERR_IO, "models is a directory, expected a .safetensors file");
    write_bytes(in_directory("models/model.safetensors.index.json"), "{}", 2);
    snprintf(wanted, sizeof wanted, "the checkpoint in it is %s", in_directory("models/model.safetensors.index.json"));
    must_fail(in_directory("models/"), LIMIT, SWIN_ERR_IO, wanted);
    write_bytes(in_directory("models/model.safetensors"), "{}", 2);
    snprintf(wanted, sizeof wanted, "the checkpoint in it is %s", in_directory("models/model.safetensors"));
    must_fail(in_directory("models"), LIMIT, SWIN_ERR_IO, wanted);
}

static void other_formats_get_the_command_that_converts_them(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *what;
    } cases[] = {
        {"PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0", 16, "zip"},
        {"PK\3\4", 4, "zip"},
        {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M", 18, "pickle"},
        {"\x80\x04\x95\0\0\0\0\0\0\0\0", 11, "pickle"},
        {"\x80\x02}q\0.", 6, "pickle"},
    };
    char command[1024];
    snprintf(command, sizeof command,
             "not a safetensors file; convert it: python3 -m libswin convert %s %s.safetensors", in_directory("other"),
             in_directory("other"));

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_bytes(in_directory("other"), cases[i].bytes, cases[i].length);
        must_fail(in_directory("other"), LIMIT, SWIN_ERR_FORMAT, cases[i].what);
        must_fail(in_directory("other"), LIMIT, SWIN_ERR_FORMAT, command);
    }
    /* Nothing is to be converted onto itself. */
    snprintf(command, sizeof command, "libswin convert %s.safetensors %s.converted.safetensors", in_directory("other"),
             in_directory("other"));
    write_bytes(in_directory("other.safetensors"), cases[0].bytes, cases[0].length);
    must_fail(in_directory("other.safetensors"), LIMIT, SWIN_ERR_FORMAT, command);
    /* What no command converts is called by its name. */
    static const struct {
        const char *bytes;
        size_t length;
        const char *words;
    } others[] = {
        {"\x89HDF\r\n\x1a\n\0\0\0\0", 12, "other is an HDF5 file, expected a safetensors file"},
        {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, "other is a PNG picture, expected"},
        {"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1", 13, "other is a JPEG picture, expected"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "other is a Git LFS pointer (git lfs pull fetches"},
        {"<!DOCTYPE html>\n", 16, "other is a web page"},
        {"<html><head>", 12, "other is a web page"},
        {"GGUF\3\0\0\0\0\0\0\0", 12, "other is a GGUF file"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        write_bytes(in_directory("other"), others[i].bytes, others[i].length);
        must_fail(in_directory("other"), LIMIT, SWIN_ERR_FORMAT, others[i].words);
    }
    write_bytes(in_directory("config.json"), "{\"model_type\": \"swin\"}", 22);
    must_fail(in_directory("config.json"), LIMIT, SWIN_ERR_FORMAT, "JSON");
    /* A header whose length happens to begin like a zip archive's is still one: here of 0x04034b50 bytes. */
    char *header = malloc(0x04034b50);
    assert_non_null(header);
    memset(header, ' ', 0x04034b50);
    memcpy(header, "{}", 2);
    write_raw(in_directory("good"), header, 0x04034b50, 0x04034b50, 0);
    free(header);
    sw_checkpoint checkpoint;
    must_open(in_directory("good"), &checkpoint);
    sw_checkpoint_close(&checkpoint);
}

static void hostile_names_stay_out_of_messages(void **state)
{
    (void)state;
    sw_checkpoint checkpoint;
    swin_error err = {0};
    static const char header[] = "{" TENSOR("\\u001b[2J\\r\xc3\xa9%n", "F32", "[2]", "0", "4") "}";
    write_raw(in_directory("bad"), header, sizeof header - 1, sizeof header - 1, 4);
    assert_int_equal(sw_checkpoint_open(in_directory("bad"), LIMIT, &checkpoint, &err), SWIN_ERR_FORMAT);
    for (const char *p = err.message; *p != '\0'; p++)
        assert_true(*p >= 0x20 && *p <= 0x7e);
    assert_non_null(strstr(err.message, "?[2J???%n"));
}

static void names_are_found_in_any_order(void **state)
{
    (void)state;
    tensor_file file = {0};
    char name[32];
    static const float value = 1.0f;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "t.%d", i * 7 % 300);
        tensor_file_add_f32(&file, name, &value, 1, 1);
    }
    tensor_file_write(&file, in_directory("many"));
    tensor_file_free(&file);
    sw_checkpoint checkpoint;
    must_open(in_directory("many"), &checkpoint);
    assert_int_equal(checkpoint.table.count, 300);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "t.%d", i);
        const sw_tensor *tensor = sw_tensor_table_find(&checkpoint.table, name);
        assert_non_null(tensor);
        assert_string_equal(tensor->name, name);
    }
    for (size_t i = 1; i < checkpoint.table.count; i++)
        assert_true(strcmp(checkpoint.table.tensors[i - 1].name, checkpoint.table.tensors[i].name) < 0);
    sw_checkpoint_close(&checkpoint);
}

/* What no header leads to, asked for all the same. */
static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    static const float data[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    tensor_file file = {0};
    tensor_file_add_f32(&file, "a", data, 3, 2, 1, 2);
    tensor_file_write(&file, in_directory("small"));
    tensor_file_free(&file);
    sw_checkpoint checkpoint;
    char bytes[8], text[64];
    must_open(in_directory("small"), &checkpoint);
    const uint64_t size = checkpoint.files[0].size;
    assert_int_equal(sw_file_read(&checkpoint.files[0], size, bytes, 0, NULL), SWIN_OK);
    assert_int_equal(sw_file_read(&checkpoint.files[0], size - 7, bytes, 8, NULL), SWIN_ERR_IO);
    assert_int_equal(sw_file_read(&checkpoint.files[0], UINT64_MAX, bytes, 8, NULL), SWIN_ERR_IO);
    assert_int_equal(sw_file_read(&checkpoint.files[0], 4, bytes, SIZE_MAX, NULL), SWIN_ERR_IO);

    const sw_tensor *tensor = checkpoint.table.tensors;
    assert_string_equal(sw_tensor_shape_text(tensor, text, sizeof text), "[2, 1, 2]");
    for (size_t room = 1; room <= 9; room++) {
        sw_tensor_shape_text(tensor, text, room);
        assert_int_equal(strlen(text), room - 1);
        assert_memory_equal(text, "[2, 1, 2]", room - 1);
    }
    assert_int_equal(sw_tensor_table_reserve(&checkpoint.table, SIZE_MAX, 1, NULL), SWIN_ERR_LIMIT);
    assert_int_equal(sw_tensor_table_reserve(&checkpoint.table, 1, SIZE_MAX, NULL), SWIN_ERR_LIMIT);
    assert_int_equal(checkpoint.table.count, 1);
    sw_checkpoint_close(&checkpoint);
    const sw_tensor_table empty = {0};
    assert_null(sw_tensor_table_find(&empty, "a"));
    sw_file closed = {.descriptor = -1};
    sw_file_close(&closed);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char header[] = "{" TENSOR("a", "F32", "[2]", "0", "8") "," TENSOR("b", "F16", "[3]", "8", "14") "}";
    write_raw(in_directory("good"), header, sizeof header - 1, sizeof header - 1, 14);
    sw_checkpoint checkpoint;
    long count = 0;
    for (;; count++) {
        swin_error err = {0};
        memory_fail_after(count);
        const swin_status status = sw_checkpoint_open(in_directory("good"), LIMIT, &checkpoint, &err);
        assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
        if (status == SWIN_OK)
            break;
        assert_int_equal(status, SWIN_ERR_NO_MEMORY);
        assert_int_equal(err.status, SWIN_ERR_NO_MEMORY);
        assert_int_equal(memory_live_blocks(), 0);
    }
    assert_true(count > 3);
    sw_checkpoint_close(&checkpoint);
}

static int set_up(void **state)
{
    (void)state;
    make_directory();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_directory();
    return memory_live_blocks() == 0 ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(broken_headers_are_refused),
        TEST(absurd_lengths_are_refused),
        TEST(every_truncation_is_refused),
        TEST(bombs_are_refused),
        TEST(accepted_oddities),
        TEST(values_of_every_weight_type_are_read),
        TEST(long_tensors_of_doubles_are_read),
        TEST(a_file_that_shrinks_or_changes_gives_a_status),
        TEST(what_is_no_file_is_refused),
        TEST(the_command_is_for_a_shell),
        TEST(a_directory_is_looked_into),
        TEST(other_formats_get_the_command_that_converts_them),
        TEST(hostile_names_stay_out_of_messages),
        TEST(names_are_found_in_any_order),
        TEST(what_is_not_there_is_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
