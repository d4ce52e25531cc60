/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

/* The constants of this node. The loader fills them in before it loads a program. */
#include "mac.h"
#include "types.h"

const volatile struct node_constants node;
