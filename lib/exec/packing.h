/* SPDX-License-Identifier: MIT */
/*
 * packing.h - reads a network's weights and position biases and packs them, several threads at once.
 */
#ifndef SW_EXEC_PACKING_H
#define SW_EXEC_PACKING_H

#include "network.h"

/* All layers and biases of a network whose products are made. The first failure wins. */
swin_status sw_packing_run(sw_network *network, int32_t threads, swin_error *err);

#endif
