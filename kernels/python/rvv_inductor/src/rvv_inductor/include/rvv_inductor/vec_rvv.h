// VecRVV: what makes at::vec vectorised on riscv64. Inductor's C++ compiler includes it before
// anything else.
//
// at::vec has no RVV of its own: its generic class keeps 32 bytes in an array and computes element
// by element. Here its members and free functions are specialised, type by type, for what generated
// code uses; all else keeps the generic form. Checked against PyTorch 2.14.
#pragma once

#include "vec_convert.h"
#include "vec_mask.h"
#include "vec_members.h"
#include "vec_operators.h"
#include "vec_reduce.h"
