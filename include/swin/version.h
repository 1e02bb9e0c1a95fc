/* SPDX-License-Identifier: MIT */
/*
 * version.h - the version of libswin, and the only place where it is written.
 *
 * meson.build reads the numbers from here; the soname, the pkg-config file and swin_version() follow, and a test
 * checks that they agree. SWIN_ABI_VERSION changes only when a program built against the previous one would break.
 */
#ifndef SWIN_VERSION_H
#define SWIN_VERSION_H

#define SWIN_VERSION_MAJOR 0
#define SWIN_VERSION_MINOR 1
#define SWIN_VERSION_PATCH 0

#define SWIN_ABI_VERSION 0

#endif
