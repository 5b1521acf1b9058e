def pallas_fused_layer_norm_b372fc21_kernel(in_ptr0, in_ptr1, in_ptr2, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = jnp.sum(tmp0, axis=(2,), keepdims=True)
    tmp2 = tmp1 / 64.0
    tmp3 = tmp0 - tmp2
    tmp4 = tmp3 * tmp3
    tmp5 = jnp.sum(tmp4, axis=(2,), keepdims=True)
    tmp6 = tmp5 / 64.0
    tmp7 = tmp6 + 1e-05
    tmp8 = lax.rsqrt(tmp7)
    tmp9 = tmp0 - tmp2
    tmp10 = tmp9 * tmp8
    tmp11 = in_ptr1[...]
    tmp12 = tmp10 * tmp11
    tmp13 = in_ptr2[...]
    tmp14 = tmp12 + tmp13
    out_ptr0[...] = tmp14


def pallas_fused_linear_fad81a19_kernel(in_ptr0, in_ptr1, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = in_ptr1[...]
    tmp2 = tmp0 + tmp1
    out_ptr0[...] = tmp2


def pallas_fused_bitwise_not_div_masked_fill_ones_softmax_tril_e96ce54a_kernel(in_ptr0, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = tmp0 / 4.0
    iota0 = lax.broadcasted_iota(jnp.int32, (1, 1, 16, 1), 2)
    tmp2 = iota0
    iota1 = lax.broadcasted_iota(jnp.int32, (1, 1, 1, 16), 3)
    tmp3 = iota1
    tmp4 = tmp3 <= tmp2
    tmp5 = jnp.where(tmp4, True, False)
    tmp6 = jnp.logical_not(tmp5)
    tmp7 = jnp.where(tmp6, -jnp.inf, tmp1)
    tmp8 = jnp.max(tmp7, axis=(3,), keepdims=True)
    tmp9 = tmp7 - tmp8
    tmp10 = tmp8 - tmp8
    tmp11 = tmp7 == tmp8
    tmp12 = jnp.where(tmp11, tmp10, tmp9)
    tmp13 = jnp.exp(tmp12)
    tmp14 = jnp.sum(tmp13, axis=(3,), keepdims=True)
    tmp15 = tmp13 / tmp14
    out_ptr0[...] = tmp15


def pallas_fused_add_layer_norm_linear_6438b9d3_kernel(in_ptr0, in_ptr1, in_ptr2, in_ptr3, in_ptr4, out_ptr0, out_ptr1):
    tmp0 = in_ptr0[...]
    tmp1 = in_ptr1[...]
    tmp2 = tmp0 + tmp1
    tmp3 = in_ptr2[...]
    tmp4 = tmp3 + tmp2
    out_ptr0[...] = tmp4
    tmp5 = jnp.sum(tmp4, axis=(2,), keepdims=True)
    tmp6 = tmp5 / 64.0
    tmp7 = tmp4 - tmp6
    tmp8 = tmp7 * tmp7
    tmp9 = jnp.sum(tmp8, axis=(2,), keepdims=True)
    tmp10 = tmp9 / 64.0
    tmp11 = tmp10 + 1e-05
    tmp12 = lax.rsqrt(tmp11)
    tmp13 = tmp4 - tmp6
    tmp14 = tmp13 * tmp12
    tmp15 = in_ptr3[...]
    tmp16 = tmp14 * tmp15
    tmp17 = in_ptr4[...]
    tmp18 = tmp16 + tmp17
    out_ptr1[...] = tmp18


def pallas_fused_gelu_linear_6d2b1676_kernel(in_ptr0, in_ptr1, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = in_ptr1[...]
    tmp2 = tmp0 + tmp1
    tmp3 = tmp2 * tmp2
    tmp4 = tmp3 * tmp2
    tmp5 = tmp4 * 0.044715
    tmp6 = tmp2 + tmp5
    tmp7 = tmp6 * 0.7978845608028654
    tmp8 = jnp.tanh(tmp7)
    tmp9 = tmp8 + 1.0
    tmp10 = tmp2 * 0.5
    tmp11 = tmp10 * tmp9
    out_ptr0[...] = tmp11


def pallas_fused_add_linear_41e6d723_kernel(in_ptr0, in_ptr1, in_ptr2, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = in_ptr1[...]
    tmp2 = tmp0 + tmp1
    tmp3 = in_ptr2[...]
    tmp4 = tmp3 + tmp2
    out_ptr0[...] = tmp4
