/* SPDX-License-Identifier: MIT */
/* A libswin whose ABI version is right, and which lacks everything else. */
#include <swin/version.h>

unsigned swin_abi_version(void);
unsigned swin_abi_version(void)
{
    return SWIN_ABI_VERSION;
}
