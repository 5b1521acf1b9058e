"""A call of every row of the operator table, as programs of one statement: arguments are found by the ATen schema, by
trying what such arguments usually are until eager takes them; what cannot be found so is written down in EXPLICIT.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from .inputs import index_input, random_input
from .program import SPACE, Program, Statement

# Sizes that self may have, most telling first: square, so that no axis can be told by its size.
SHAPES = [(4, 4), (2, 4, 4), (1, 2, 4, 4), (4,), (1, 2, 4, 4, 4), (), (2, 3)]
LAYOUTS = ["contiguous", "permuted", "stepped", "offset", "expanded", "channels_last", "overlapping", "one_odd"]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]

# op -> the text of the arguments | the inputs: sizes, then ":bool", or ":index:N" for indices below N.
EXPLICIT: dict[str, str] = {
    "aten.embedding.default": "{0}, {1}|(4,4) (3,):index:4",
    "aten.clamp.Tensor": "{0}, {1}, {2}|(4,4) (4,4) (4,)",
    "aten.clamp.default": "{0}, -1, 2|(4,4)",
    "aten.to.device": "{0}, 'cpu', torch.float64|(4,4)",
    "aten._reshape_alias.default": "{0}.contiguous(), [2, 8], [8, 1]|(4,4)",
    "aten.view.default": "{0}.contiguous(), [2, 8]|(4,4)",
    "aten.reshape.default": "{0}, [2, 8]|(4,4)",
    "aten.repeat.default": "{0}, [2, 3]|(4,4)",
    "aten.expand.default": "{0}, [2, 4, 4]|(4,1)",
    "prims.convert_element_type.default": "{0}, torch.float64|(4,4)",
    "prims.iota.default": "4, start=1, step=2, dtype=torch.int64, device='cpu', requires_grad=False",
    "prims.fma.default": "{0}, {1}, {2}|(4,4) (4,4) (4,4)",
    "aten._is_all_true.default": "{0}|(4,4):bool",
    "aten._is_any_true.default": "{0}|(4,4):bool",
    "aten.hann_window.default": "7",
    "aten.hann_window.periodic": "7, False",
    "aten.hamming_window.default": "8",
    "aten.hamming_window.periodic": "8, False",
    "aten.hamming_window.periodic_alpha": "7, True, 0.6",
    "aten.hamming_window.periodic_alpha_beta": "7, False, 0.6, 0.3",
    "aten.blackman_window.default": "7",
    "aten.blackman_window.periodic": "8, False",
    "aten.bartlett_window.default": "7",
    "aten.bartlett_window.periodic": "8, False",
    "aten.max_unpool2d.default": "{0}, {1}, [4, 4]|(1,2,2,2) (1,2,2,2):index:16",
    "aten.max_unpool3d.default": "{0}, {1}, [4, 4, 4], [2, 2, 2], [0, 0, 0]|(2,2,2,2) (2,2,2,2):index:64",
    "aten.where.self": "{0}, {1}, {2}|(4,4):bool (4,4) (4,4)",
    "aten.where.Scalar": "{0}, 1, 2|(4,4):bool",
    "aten.where.ScalarSelf": "{0}, 1, {1}|(4,4):bool (4,4)",
    "aten.where.ScalarOther": "{0}, {1}, 2|(4,4):bool (4,4)",
    "aten.index.Tensor": "{0}, [{1}, None]|(4,4) (3,):index:4",
    "aten._unsafe_index.Tensor": "{0}, [None, {1}]|(4,4) (3,):index:4",
    "aten.index_select.default": "{0}, 1, {1}|(4,4) (3,):index:4",
    "aten.gather.default": "{0}, 1, {1}|(4,4) (4,3):index:4",
    "aten.layer_norm.default": "{0}, [4], {1}, {2}|(4,4) (4,) (4,)",
    "aten.rms_norm.default": "{0}, [4], {1}|(4,4) (4,)",
    "aten._fused_rms_norm.default": "{0}, [4], {1}, 1e-5|(4,4) (4,)",
    "aten.linalg_vector_norm.default": "{0}, 2, [1]|(4,4)",
    "aten.norm.ScalarOpt_dim": "{0}, 2, [1]|(4,4)",
    "aten.norm.Scalar": "{0}|(4,4)",
    "aten.linalg_norm.default": "{0}, None, [1]|(4,4)",
    "aten.native_layer_norm.default": "{0}, [4], {1}, {2}, 1e-5|(4,4) (4,) (4,)",
    "aten.native_layer_norm_backward.default": "{0}, {1}, [4], {2}, {3}.abs() + 1, {4}, {4}, [True, True, True]|(4,4) (4,4) (4,1) (4,1) (4,)",
    "aten.native_group_norm.default": "{0}, {1}, {2}, 2, 4, 4, 2, 1e-5|(2,4,2,2) (4,) (4,)",
    "aten.group_norm.default": "{0}, 2, {1}, {2}|(2,4,4) (4,) (4,)",
    "aten.instance_norm.default": "{0}, {1}, {2}, None, None, True, 0.1, 1e-5, False|(2,4,4) (4,) (4,)",
    "aten.batch_norm.default": "{0}, {1}, {2}, {3}, {4}.abs() + 1, False, 0.1, 1e-5, False|(2,4,4) (4,) (4,) (4,) (4,)",
    "aten._native_batch_norm_legit_no_training.default": "{0}, {1}, {2}, {3}, {4}.abs() + 1, 0.1, 1e-5|(2,4,4) (4,) (4,) (4,) (4,)",
    "aten._native_batch_norm_legit.no_stats": "{0}, {1}, {2}, True, 0.1, 1e-5|(2,4,4) (4,) (4,)",
    "aten._native_batch_norm_legit_functional.default": "{0}, {1}, {2}, {3}, {4}.abs() + 1, True, 0.1, 1e-5|(2,4,4) (4,) (4,) (4,) (4,)",
    "aten.native_batch_norm_backward.default": "{0}, {1}, {2}, {3}, {4}.abs() + 1, {3}, {4}.abs() + 1, True, 1e-5, [True, True, True]|(2,4,4) (2,4,4) (4,) (4,) (4,)",
    "aten._softmax_backward_data.default": "{0}, torch.softmax({1}, 1), 1, {1}.dtype|(4,4) (4,4)",
    "aten._log_softmax_backward_data.default": "{0}, torch.log_softmax({1}, 1), 1, {1}.dtype|(4,4) (4,4)",
    "aten.native_dropout_backward.default": "{0}, {1}, 2.0|(4,4) (4,4):bool",
    "aten.gelu_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.sigmoid_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.silu_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.tanh_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.threshold_backward.default": "{0}, {1}, 0|(4,4) (4,4)",
    "aten.select_backward.default": "{0}, [4, 4], 1, 2|(4,)",
    "aten.slice_backward.default": "{0}, [4, 4], 1, 0, 4, 2|(4,2)",
    "aten.linear.default": "{0}, {1}, {2}|(4,4) (3,4) (3,)",
    "aten.addmm.default": "{0}, {1}, {2}|(3,) (4,4) (4,3)",
    "aten.baddbmm.default": "{0}, {1}, {2}|(2,4,3) (2,4,4) (2,4,3)",
    "aten.einsum.default": "'ij,kj->ik', [{0}, {1}]|(4,4) (3,4)",
    "aten.scaled_dot_product_attention.default": "{0}, {1}, {2}|(1,2,4,4) (1,2,4,4) (1,2,4,4)",
    "aten._scaled_dot_product_flash_attention_for_cpu.default": "{0}.contiguous(), {1}.contiguous(), {2}.contiguous()|(1,2,4,4) (1,2,4,4) (1,2,4,4)",  # it reads as if they were
    "aten._adaptive_avg_pool2d.default": "{0}, [2, 3]|(1,2,4,5)",
    "aten._adaptive_avg_pool2d_backward.default": "{0}, {1}|(1,2,2,3) (1,2,4,5)",
    "aten._adaptive_avg_pool3d.default": "{0}, [2, 3, 1]|(1,2,4,5,3)",
    "aten._adaptive_avg_pool3d_backward.default": "{0}, {1}|(1,2,2,3,1) (1,2,4,5,3)",
    "aten._convolution.default": "{0}, {1}, {2}, [1, 2], [1, 0], [1, 1], False, [0, 0], 1, False, False, False, False|(1,2,4,5) (3,2,2,2) (3,)",
    "aten._convolution.deprecated": "{0}, {1}, {2}, [1, 2], [1, 0], [1, 1], False, [0, 0], 1, False, False, False|(1,2,4,5) (3,2,2,2) (3,)",
    "aten._convolution_mode.default": "{0}, {1}, {2}, [1, 1], 'same', [1, 1], 1|(1,2,4,5) (3,2,2,3) (3,)",
    "aten._int_mm.default": "({0} * 2).to(torch.int8), ({1} * 2).to(torch.int8)|(17,8) (8,8)",
    "aten._prelu_kernel_backward.default": "{0}, {1}, {2}|(4,4) (4,4) (1,4)",
    "aten._scaled_dot_product_attention_math.default": "{0}, {1}, {2}|(1,2,4,4) (1,2,4,4) (1,2,4,4)",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default": "{0}.contiguous(), {1}.contiguous(), {2}.contiguous(), {3}.contiguous(), *torch.ops.aten._scaled_dot_product_flash_attention_for_cpu({1}.contiguous(), {2}.contiguous(), {3}.contiguous()), 0.0, False|(1,2,4,4) (1,2,4,4) (1,2,4,4) (1,2,4,4)",
    "aten._upsample_nearest_exact1d.default": "{0}, [7]|(1,2,4)",
    "aten._upsample_nearest_exact1d.vec": "{0}, [7], None|(1,2,4)",
    "aten._upsample_nearest_exact2d.default": "{0}, [7, 3]|(1,2,4,5)",
    "aten._upsample_nearest_exact2d.vec": "{0}, None, [1.5, 2.0]|(1,2,4,5)",
    "aten._upsample_nearest_exact2d_backward.default": "{0}, [7, 3], [1, 2, 4, 5]|(1,2,7,3)",
    "aten._upsample_nearest_exact3d.default": "{0}, [7, 3, 2]|(1,2,4,5,3)",
    "aten._upsample_nearest_exact3d.vec": "{0}, [7, 3, 2], None|(1,2,4,5,3)",
    "aten._weight_norm.default": "{0}, {1}|(4,3) (4,1)",
    "aten._weight_norm_interface.default": "{0}.contiguous(), {1}.contiguous()|(4,3) (4,1)",
    "aten._weight_norm_interface_backward.default": "{0}.contiguous(), {1}.contiguous(), {2}.contiguous(), {1}.norm(dim=1, keepdim=True) + 1, 0|(4,3) (4,3) (4,1)",
    "aten.adaptive_avg_pool1d.default": "{0}, [3]|(1,2,4)",
    "aten.adaptive_avg_pool2d.default": "{0}, [2, 3]|(1,2,4,5)",
    "aten.adaptive_avg_pool3d.default": "{0}, [2, 3, 1]|(1,2,4,5,3)",
    "aten.adaptive_max_pool1d.default": "{0}, [3]|(1,2,4)",
    "aten.adaptive_max_pool2d.default": "{0}, [2, 3]|(1,2,4,5)",
    "aten.adaptive_max_pool2d_backward.default": "{0}, {1}, torch.ops.aten.adaptive_max_pool2d({1}, [2, 3])[1]|(1,2,2,3) (1,2,4,5)",
    "aten.adaptive_max_pool3d.default": "{0}, [2, 3, 1]|(1,2,4,5,3)",
    "aten.adaptive_max_pool3d_backward.default": "{0}, {1}, torch.ops.aten.adaptive_max_pool3d({1}, [2, 3, 1])[1]|(1,2,2,3,1) (1,2,4,5,3)",
    "aten.affine_grid_generator.default": "{0}, [2, 3, 4, 5], False|(2,2,3)",
    "aten.avg_pool1d.default": "{0}, [3], [2], [1]|(1,2,5)",
    "aten.avg_pool2d.default": "{0}, [3, 2], [2, 1], [1, 0]|(1,2,4,5)",
    "aten.avg_pool2d_backward.default": "{0}, {1}, [3, 2], [2, 1], [1, 0], False, True, None|(1,2,2,4) (1,2,4,5)",
    "aten.avg_pool3d.default": "{0}, [3, 2, 2], [2, 1, 1], [1, 0, 0]|(1,2,4,5,3)",
    "aten.avg_pool3d_backward.default": "{0}, {1}, [3, 2, 2], [2, 1, 1], [1, 0, 0], False, True, None|(1,2,2,4,2) (1,2,4,5,3)",
    "aten.binary_cross_entropy.default": "torch.sigmoid({0}), torch.sigmoid({1})|(4,4) (4,4)",
    "aten.binary_cross_entropy_backward.default": "{0}, torch.sigmoid({1}), torch.sigmoid({2}), None, 0|(4,4) (4,4) (4,4)",
    "aten.clip.Tensor": "{0}, {1}, {2}|(4,4) (4,4) (4,)",
    "aten.clip.default": "{0}, -1, 2|(4,4)",
    "aten.col2im.default": "{0}, [4, 5], [2, 3], [1, 1], [1, 0], [1, 2]|(1,12,10)",
    "aten.conv1d.default": "{0}, {1}, {2}, [2], [1]|(1,2,5) (3,2,2) (3,)",
    "aten.conv1d.padding": "{0}, {1}, {2}, [1], 'same'|(1,2,5) (3,2,2) (3,)",
    "aten.conv2d.default": "{0}, {1}, {2}, [1, 2], [1, 0]|(1,2,4,5) (3,2,2,2) (3,)",
    "aten.conv2d.padding": "{0}, {1}, {2}, [1, 1], 'same'|(1,2,4,5) (3,2,2,3) (3,)",
    "aten.conv3d.default": "{0}, {1}, {2}, [1, 2, 1], [1, 0, 0]|(1,2,4,5,3) (3,2,2,2,2) (3,)",
    "aten.conv3d.padding": "{0}, {1}, {2}, [1, 1, 1], 'same'|(1,2,4,5,3) (3,2,2,3,1) (3,)",
    "aten.conv_tbc.default": "{0}, {1}, {2}, 1|(5,1,2) (3,2,4) (4,)",
    "aten.conv_transpose1d.default": "{0}, {1}, {2}, [2], [1]|(1,2,5) (2,3,3) (3,)",
    "aten.conv_transpose2d.input": "{0}, {1}, {2}, [1, 2], [1, 0]|(1,2,4,5) (2,3,3,2) (3,)",
    "aten.conv_transpose3d.input": "{0}, {1}, {2}, [1, 2, 1], [1, 0, 0]|(1,2,4,3,3) (2,3,3,2,2) (3,)",
    "aten.convolution.default": "{0}, {1}, {2}, [1, 2], [1, 0], [1, 1], False, [0, 0], 1|(1,2,4,5) (3,2,2,2) (3,)",
    "aten.convolution_backward.default": "{0}, {1}, {2}, [3], [1, 2], [1, 0], [1, 1], False, [0, 0], 1, [True, True, True]|(1,3,5,2) (1,2,4,5) (3,2,2,2)",
    "aten.cosine_embedding_loss.default": "{0}, {1}, {2}.sign()|(4,4) (4,4) (4,)",
    "aten.diagonal_backward.default": "{0}, [4, 5], 1, 0, 1|(4,)",
    "aten.elu_backward.default": "{0}, 1.5, 1.0, 0.5, False, {1}|(4,4) (4,4)",
    "aten.embedding_dense_backward.default": "{0}, {1}, 4, -1, False|(3,4) (3,):index:4",
    "aten.frobenius_norm.dim": "{0}, [1]|(4,4)",
    "aten.glu_backward.default": "{0}, {1}, 1|(4,2) (4,4)",
    "aten.grid_sampler.default": "{0}, torch.tanh({1}), 0, 0, False|(1,2,4,5) (1,3,4,2)",
    "aten.grid_sampler_2d.default": "{0}, torch.tanh({1}), 0, 0, False|(1,2,4,5) (1,3,4,2)",
    "aten.gru.input": "{0}, {1}, [{2}, {3}, {4}, {5}], True, 1, 0.0, False, False, False|(3,2,4) (1,2,3) (9,4) (9,3) (9,) (9,)",
    "aten.gru_cell.default": "{0}, {1}, {2}, {3}, {4}, {5}|(2,4) (2,3) (9,4) (9,3) (9,) (9,)",
    "aten.hardshrink_backward.default": "{0}, {1}, 0.5|(4,4) (4,4)",
    "aten.hardsigmoid_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.hardswish_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.hardtanh_backward.default": "{0}, {1}, -1, 1|(4,4) (4,4)",
    "aten.hinge_embedding_loss.default": "{0}, {1}.sign()|(4,4) (4,4)",
    "aten.huber_loss_backward.default": "{0}, {1}, {2}, 0, 1.0|(4,4) (4,4) (4,4)",
    "aten.im2col.default": "{0}, [2, 3], [1, 1], [1, 0], [1, 2]|(1,2,4,5)",
    "aten.index_reduce.default": "{0}, 1, {1}, {2}, 'amax'|(4,4) (3,):index:4 (4,3)",
    "aten.leaky_relu_backward.default": "{0}, {1}, 0.1, False|(4,4) (4,4)",
    "aten.linalg_matrix_norm.default": "{0}, 1|(4,4)",
    "aten.linalg_matrix_norm.str_ord": "{0}|(4,4)",
    "aten.log_sigmoid_backward.default": "{0}, {1}, torch.ops.aten.log_sigmoid_forward({1})[1]|(4,4) (4,4)",
    "aten.logit_backward.default": "{0}, torch.sigmoid({1}), 0.1|(4,4) (4,4)",
    "aten.lstm.input": "{0}, [{1}, {2}], [{3}, {4}, {5}, {6}], True, 1, 0.0, False, False, False|(3,2,4) (1,2,3) (1,2,3) (12,4) (12,3) (12,) (12,)",
    "aten.lstm_cell.default": "{0}, [{1}, {2}], {3}, {4}, {5}, {6}|(2,4) (2,3) (2,3) (12,4) (12,3) (12,) (12,)",
    "aten.masked_scatter_backward.default": "{0}, {1}, [16]|(4,4) (4,4):bool",
    "aten.max_pool1d.default": "{0}, [3], [2], [1]|(1,2,5)",
    "aten.max_pool1d_with_indices.default": "{0}, [3], [2], [1]|(1,2,5)",
    "aten.max_pool2d.default": "{0}, [3, 2], [2, 1], [1, 0]|(1,2,4,5)",
    "aten.max_pool2d_with_indices.default": "{0}, [3, 2], [2, 1], [1, 0]|(1,2,4,5)",
    "aten.max_pool2d_with_indices_backward.default": "{0}, {1}, [3, 2], [2, 1], [1, 0], [1, 1], False, torch.ops.aten.max_pool2d_with_indices({1}, [3, 2], [2, 1], [1, 0])[1]|(1,2,2,4) (1,2,4,5)",
    "aten.max_pool3d.default": "{0}, [3, 2, 2], [2, 1, 1], [1, 0, 0]|(1,2,4,5,3)",
    "aten.max_pool3d_with_indices.default": "{0}, [3, 2, 2], [2, 1, 1], [1, 0, 0]|(1,2,4,5,3)",
    "aten.max_pool3d_with_indices_backward.default": "{0}, {1}, [3, 2, 2], [2, 1, 1], [1, 0, 0], [1, 1, 1], False, torch.ops.aten.max_pool3d_with_indices({1}, [3, 2, 2], [2, 1, 1], [1, 0, 0])[1]|(1,2,2,4,2) (1,2,4,5,3)",
    "aten.meshgrid.default": "[{0}, {1}]|(4,) (3,)",
    "aten.meshgrid.indexing": "[{0}, {1}], indexing='xy'|(4,) (3,)",
    "aten.mish_backward.default": "{0}, {1}|(4,4) (4,4)",
    "aten.mse_loss_backward.default": "{0}, {1}, {2}, 0|(4,4) (4,4) (4,4)",
    "aten.nanquantile.default": "{0}, torch.tensor([0.25, 0.6], dtype={0}.dtype), 1|(4,4)",
    "aten.nanquantile.scalar": "{0}, 0.3, 1|(4,4)",
    "aten.native_group_norm_backward.default": "{0}, {1}, {2}, {3}.abs() + 1, {4}, 2, 4, 4, 2, [True, True, True]|(2,4,2,2) (2,4,2,2) (2,2) (2,2) (4,)",
    "aten.nll_loss2d.default": "{0}, {1}|(2,4,2,3) (2,2,3):index:4",
    "aten.nll_loss2d_backward.default": "{0}, {1}, {2}, None, 0, -100, torch.zeros([], dtype={1}.dtype)|(2,2,3) (2,4,2,3) (2,2,3):index:4",
    "aten.nll_loss2d_forward.default": "{0}, {1}, None, 1, -100|(2,4,2,3) (2,2,3):index:4",
    "aten.nll_loss_backward.default": "{0}, {1}, {2}, None, 0, -100, torch.zeros([], dtype={1}.dtype)|(3,) (3,4) (3,):index:4",
    "aten.nll_loss_forward.default": "{0}, {1}, None, 1, -100|(3,4) (3,):index:4",
    "aten.norm.ScalarOpt_dim_dtype": "{0}, 2, [1], False, dtype=torch.float64|(4,4)",
    "aten.norm.ScalarOpt_dtype": "{0}, 2, dtype=torch.float64|(4,4)",
    "aten.quantile.default": "{0}, torch.tensor([0.25, 0.6], dtype={0}.dtype), 1|(4,4)",
    "aten.quantile.scalar": "{0}, 0.3, 1|(4,4)",
    "aten.reflection_pad1d_backward.default": "{0}, {1}, [1, 2]|(1,2,7) (1,2,4)",
    "aten.reflection_pad2d_backward.default": "{0}, {1}, [1, 2, 1, 0]|(1,2,5,8) (1,2,4,5)",
    "aten.reflection_pad3d.default": "{0}, [1, 0, 1, 2, 1, 0]|(1,2,4,5,3)",
    "aten.reflection_pad3d_backward.default": "{0}, {1}, [1, 0, 1, 2, 1, 0]|(1,2,5,8,4) (1,2,4,5,3)",
    "aten.renorm.default": "{0}, 2, 0, 1.0|(4,4)",
    "aten.replication_pad1d_backward.default": "{0}, {1}, [1, 2]|(1,2,7) (1,2,4)",
    "aten.replication_pad2d_backward.default": "{0}, {1}, [1, 2, 1, 0]|(1,2,5,8) (1,2,4,5)",
    "aten.replication_pad3d.default": "{0}, [1, 0, 1, 2, 1, 0]|(1,2,4,5,3)",
    "aten.replication_pad3d_backward.default": "{0}, {1}, [1, 0, 1, 2, 1, 0]|(1,2,5,8,4) (1,2,4,5,3)",
    "aten.rnn_relu.input": "{0}, {1}, [{2}, {3}, {4}, {5}], True, 1, 0.0, False, False, False|(3,2,4) (1,2,3) (3,4) (3,3) (3,) (3,)",
    "aten.rnn_relu_cell.default": "{0}, {1}, {2}, {3}, {4}, {5}|(2,4) (2,3) (3,4) (3,3) (3,) (3,)",
    "aten.rnn_tanh.input": "{0}, {1}, [{2}, {3}, {4}, {5}], True, 1, 0.0, False, False, False|(3,2,4) (1,2,3) (3,4) (3,3) (3,) (3,)",
    "aten.rnn_tanh_cell.default": "{0}, {1}, {2}, {3}, {4}, {5}|(2,4) (2,3) (3,4) (3,3) (3,) (3,)",
    "aten.repeat_interleave.Tensor": "torch.ones_like({0}), output_size=4|(4,):index:2",
    "aten.repeat_interleave.self_Tensor": "{0}, {1} * 0 + 2, 0, output_size=8|(4,4) (4,):index:2",
    "aten.rrelu_with_noise_backward.default": "{0}, {1}, {2}, 0.1, 0.3, True, False|(4,4) (4,4) (4,4)",
    "aten.scatter.reduce": "{0}, 1, {1}, {2}, reduce='add'|(4,4) (4,3):index:4 (4,3)",
    "aten.scatter.value_reduce": "{0}, 1, {1}, 2, reduce='multiply'|(4,4) (4,3):index:4",
    "aten.smooth_l1_loss_backward.default": "{0}, {1}, {2}, 0, 1.0|(4,4) (4,4) (4,4)",
    "aten.soft_margin_loss_backward.default": "{0}, {1}, {2}.sign(), 0|(4,4) (4,4) (4,4)",
    "aten.softplus_backward.default": "{0}, {1}, 1.5, 20|(4,4) (4,4)",
    "aten.softshrink_backward.default": "{0}, {1}, 0.5|(4,4) (4,4)",
    "aten.unfold_backward.default": "{0}, [4, 5], 1, 3, 1|(4,3,3)",
    "aten.upsample_bicubic2d.default": "{0}, [7, 3], False|(1,2,4,5)",
    "aten.upsample_bicubic2d.vec": "{0}, [7, 3], True, None|(1,2,4,5)",
    "aten.upsample_bilinear2d.default": "{0}, [7, 3], False|(1,2,4,5)",
    "aten.upsample_bilinear2d.vec": "{0}, [7, 3], True, None|(1,2,4,5)",
    "aten.upsample_bilinear2d_backward.default": "{0}, [7, 3], [1, 2, 4, 5], False|(1,2,7,3)",
    "aten.upsample_linear1d.default": "{0}, [7], False|(1,2,4)",
    "aten.upsample_linear1d.vec": "{0}, [7], True, None|(1,2,4)",
    "aten.upsample_linear1d_backward.default": "{0}, [7], [1, 2, 4], False|(1,2,7)",
    "aten.upsample_nearest1d.default": "{0}, [7]|(1,2,4)",
    "aten.upsample_nearest1d.vec": "{0}, [7], None|(1,2,4)",
    "aten.upsample_nearest1d_backward.default": "{0}, [7], [1, 2, 4]|(1,2,7)",
    "aten.upsample_nearest2d.default": "{0}, [7, 3]|(1,2,4,5)",
    "aten.upsample_nearest2d.vec": "{0}, None, [1.5, 2.0]|(1,2,4,5)",
    "aten.upsample_nearest2d_backward.default": "{0}, [7, 3], [1, 2, 4, 5]|(1,2,7,3)",
    "aten.upsample_nearest3d.default": "{0}, [7, 3, 2]|(1,2,4,5,3)",
    "aten.upsample_nearest3d.vec": "{0}, [7, 3, 2], None|(1,2,4,5,3)",
    "aten.upsample_nearest3d_backward.default": "{0}, [7, 3, 2], [1, 2, 4, 5, 3]|(1,2,7,3,2)",
    "aten.upsample_trilinear3d.default": "{0}, [7, 3, 2], False|(1,2,4,5,3)",
    "aten.upsample_trilinear3d.vec": "{0}, [7, 3, 2], True, None|(1,2,4,5,3)",
    "aten.upsample_trilinear3d_backward.default": "{0}, [7, 3, 2], [1, 2, 4, 5, 3], False|(1,2,7,3,2)",
}  # fmt: skip
# Kernels that read outside of what they are given rather than refuse wrong arguments: nothing is tried on these.
NOT_TRIED = re.compile(r"norm|backward|attention|embedding|conv|pool|lstm|gru|rnn|fft|grid|upsample|sample|im2col|col2im|quant|sparse")
# Rows that are no functions of one call in eager on a CPU, with the reason.
WITHOUT_CALL = {"aten._assert_tensor_metadata.default": "an assertion: every trace with `to` has it",
    "aten._assert_async.default": "an assertion: it returns nothing",
    "aten._assert_async.msg": "an assertion: it returns nothing",
    "aten._conj.default": "on real inputs it is an alias that no trace has, and complex inputs are refused",
    "aten._fused_rms_norm_backward.default": "eager has no such kernel on a CPU",
    "aten.rrelu_with_noise.default": "it draws numbers and writes them into an argument",
    "aten.rrelu_with_noise_functional.default": "it draws numbers",
    "aten.lift_fresh.default": "export records it as a copy, which eager does not make",
}
# What differs, by its operator: left to XLA or to PyTorch's trace, with the reason.
KNOWN = {
    "aten.view.dtype": "bytes of an argument seen at another width are given back as a copy; test_shapes.py compares the values",
    "aten.kthvalue.default": "which of equal elements eager names is an accident of its partition",
    "prims.signbit.default": "the trace says that the result has the operand's dtype",
    "prims.digamma.default": "XLA's digamma of a zero is NaN, eager's an infinity",
    "aten.digamma.default": "XLA's digamma of a zero is NaN, eager's an infinity",
    "aten._native_batch_norm_legit_functional.default": "the trace says f32 for 16-bit statistics",
}


@dataclass(frozen=True)
class Recipe:
    op: str
    text: str
    inputs: tuple[Any, ...]  # (sizes, role): role None follows the dtype that is asked for

    def program(self, dtype: torch.dtype, layout: str, seed: int = 0) -> Program:
        rng = random.Random(f"{self.op} {dtype} {layout} {seed}")
        named = {}
        for k, (sizes, role) in enumerate(self.inputs):
            if isinstance(role, int):
                named[f"x{k}"] = index_input(rng, sizes, role, False)
            else:
                kind = rng.choice(("normal", "index", "ties"))
                named[f"x{k}"] = random_input(rng, sizes, role or dtype, kind, layout if k == 0 or rng.random() < 0.5 else "contiguous")
        count = len(schema_of(self.op).returns)
        listed = count == 1 and str(schema_of(self.op).returns[0].type) == "List[Tensor]"
        targets = ("v0",) if count == 1 else tuple(f"v{k}" for k in range(count))
        text = f"torch.ops.{self.op}({self.text})" + ("[0]" if listed else "")
        return Program(named, (Statement(text, tuple(named), targets),), targets, seed)


def operator(op: str) -> Any:
    found: Any = torch.ops
    for part in op.split("."):
        found = getattr(found, part)
    return found


@functools.cache
def schema_of(op: str) -> Any:
    return operator(op)._schema


def parse(op: str, written: str) -> Recipe:
    text, _, inputs = written.partition("|")
    parsed = []
    for word in inputs.split():
        sizes, _, role = word.partition(":")
        parsed.append((eval(sizes), torch.bool if role == "bool" else int(role.split(":")[1]) if role else None))
    return Recipe(op, text, tuple(parsed))


def choices(argument: Any, shape: tuple[int, ...]) -> list[tuple[str, tuple[Any, ...] | None]]:
    """(text, input) for an argument; the text {} stands for the input."""
    kind, name = str(argument.type), argument.name
    if kind == "Tensor" or (kind == "Optional[Tensor]" and name in ("weight", "bias")):
        if name in ("index", "indices"):
            return [("{}", (shape, 2)), ("{}", ((3,), 2))]
        if name in ("mask", "condition"):
            return [("{}", (shape, torch.bool))]
        last = shape[-1:] or ()
        made = [("{}", (s, None)) for s in dict.fromkeys([shape, last, (), shape[:-2] + (4, 3)])]
        return made + [("{}", (shape, torch.bool)), ("{}", (shape, 2))]
    if kind == "List[Tensor]":
        return [("[{}, {}]", (shape, None))]
    if kind == "List[Optional[Tensor]]":
        return [("[{}]", ((3,), 2))]
    simple = {
        "int": ["1", "0", "2"], "SymInt": ["1", "0", "2"], "List[int]": ["[1]", "[1, 1]", "[0, 1]", "[2, 2]", str(list(shape)), "[1, 1, 1, 1]"], "bool": ["False", "True"],
        "float": ["0.5", "2.0"], "number": ["2", "0.5"], "Scalar": ["2"], "Optional[int]": ["1"], "str": ["'none'", "'ij->ji'", "'constant'", "'sum'", "'floor'"], "Optional[str]": ["None", "'floor'"],
        "ScalarType": ["torch.float32"], "Optional[ScalarType]": ["torch.float32", "None"],
    }  # fmt: skip
    if name in ("dim1", "axis1", "destination"):
        return [("0", None), ("[0]", None)]
    simple["List[SymInt]"] = simple["List[int]"]
    simple["Optional[List[int]]"] = ["[1]", "None"]
    if str(argument.type) == "int" and argument.name == "dtype":
        return [("torch.float32", None), ("torch.int64", None)]
    return [(t, None) for t in simple.get(kind, ["None"])]


def arguments_of(op: str) -> list[Any]:
    return [a for a in schema_of(op).arguments if not a.has_default_value() or a.name in ("index",)]


def accepted(recipe: Recipe, dtype: torch.dtype = torch.float32) -> bool:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            results, _ = recipe.program(dtype, "contiguous").run()
        except Exception:
            return False
    return all(isinstance(r, torch.Tensor) for r in results) and any(r.numel() or recipe.inputs == () for r in results)


@functools.cache
def recipe_of(op: str) -> Recipe | None:
    """How to call the operator; None where no arguments were found."""
    if op in EXPLICIT:
        return parse(op, EXPLICIT[op])
    if NOT_TRIED.search(op):
        return None
    required = arguments_of(op)
    for shape in SHAPES:
        for combination in itertools.islice(itertools.product(*[choices(a, shape) for a in required]), 150):
            texts, inputs = [], []
            for argument, (text, given) in zip(required, combination):
                while "{}" in text:
                    text = text.replace("{}", "{%d}" % len(inputs), 1)
                    inputs.append(given)
                texts.append(f"{argument.name}={text}" if argument.kwarg_only else text)
            recipe = Recipe(op, ", ".join(texts), tuple(inputs))
            if accepted(recipe) or accepted(recipe, torch.int64):
                return recipe
    return None


def rows() -> list[str]:
    """The operators of the table, but those that it names only to refuse them."""
    import _pallascope_core

    return [r["op"] for r in _pallascope_core.operator_table() if r.get("outcome") != "unsupported" and exists(r["op"])]


def exists(op: str) -> bool:
    """Whether this PyTorch has the operator: the table knows some of older traces."""
    try:
        return hasattr(operator(op), "_schema")
    except AttributeError:
        return False


def matrix(op: str, full: bool = False) -> list[Program]:
    """Programs of one operator: all dtypes and layouts, or each of them once or so."""
    recipe = recipe_of(op)
    assert recipe is not None, op
    if full:
        pairs = [(d, layout, seed) for d in DTYPES for layout in LAYOUTS for seed in (0, 1)]
    else:
        rng = random.Random(op)
        first = rng.randrange(len(LAYOUTS))
        pairs = [(torch.float32, "permuted", 0), (torch.float32, rng.choice(LAYOUTS), 1)]
        pairs += [(rng.choice(DTYPES[1:4]), LAYOUTS[first], 0), (rng.choice(DTYPES[4:]), LAYOUTS[(first + 3) % len(LAYOUTS)], 0)]
    made = []
    for dtype, layout, seed in pairs:
        program = recipe.program(dtype, layout, seed)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            try:
                results, _ = program.run()
            except Exception:  # a dtype that eager has not
                continue
        if all(isinstance(r, torch.Tensor) and r.dtype in SPACE.values() for r in results):
            made.append(program)
    return made


def main() -> int:
    """The whole matrix: python -m fuzz.table [op ...]"""
    from . import runner
    from .runner import Way

    wrong = 0
    for op in sys.argv[1:] or rows():
        if op in WITHOUT_CALL:
            continue
        programs = matrix(op, full=True)
        found = runner.failures(programs, Way(numpy=True))
        wrong += len(found)
        print(f"{op}: {len(programs)} programs, {len(found)} differ", flush=True)
        for k, difference in list(found.items())[:3]:
            print(f"{difference}\n{programs[k].snippet()}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
