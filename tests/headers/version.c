/* SPDX-License-Identifier: MIT */
/*
 * The version that the header states, that meson handed out (project version, pkg-config file, soname) and that the
 * loaded library reports are one.
 */
#include <stdio.h>
#include <string.h>

#include <swin/swin.h>

static int failures;

static void expect(const char *what, const char *found, const char *expected)
{
    if (strcmp(found, expected) == 0)
        return;
    fprintf(stderr, "%s is \"%s\", version.h says \"%s\"\n", what, found, expected);
    failures++;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: version PROJECT_VERSION PC_VERSION SONAME\n");
        return 2;
    }
    char version[32];
    char soname[32];
    snprintf(version, sizeof version, "%d.%d.%d", SWIN_VERSION_MAJOR, SWIN_VERSION_MINOR, SWIN_VERSION_PATCH);
    snprintf(soname, sizeof soname, "libswin.so.%d", SWIN_ABI_VERSION);

    expect("the project's version", argv[1], version);
    expect("the pkg-config version", argv[2], version);
    expect("the soname", argv[3], soname);
    expect("swin_version_string()", swin_version_string(), version);
    if (swin_version() != SWIN_VERSION_MAJOR * 10000 + SWIN_VERSION_MINOR * 100 + SWIN_VERSION_PATCH) {
        fprintf(stderr, "swin_version() is %u, version.h says %s\n", (unsigned)swin_version(), version);
        failures++;
    }
    if (swin_abi_version() != SWIN_ABI_VERSION) {
        fprintf(stderr, "swin_abi_version() is %u, version.h says %d\n", (unsigned)swin_abi_version(),
                SWIN_ABI_VERSION);
        failures++;
    }
    return failures != 0;
}
