/* SPDX-License-Identifier: MIT */
/* A libswin of another ABI. Calling on would be a fault: the other functions do not return. */
#include <stdlib.h>

unsigned swin_abi_version(void);
const char *swin_version_string(void);

unsigned swin_abi_version(void)
{
    return 99;
}

const char *swin_version_string(void)
{
    abort();
}
