def pallas_fused_layer_norm_b5b32097_kernel(in_ptr0, in_ptr1, in_ptr2, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = jnp.sum(tmp0, axis=(1,), keepdims=True)
    tmp2 = tmp1 / 16.0
    tmp3 = tmp0 - tmp2
    tmp4 = tmp3 * tmp3
    tmp5 = jnp.sum(tmp4, axis=(1,), keepdims=True)
    tmp6 = tmp5 / 16.0
    tmp7 = tmp6 + 1e-05
    tmp8 = lax.rsqrt(tmp7)
    tmp9 = tmp0 - tmp2
    tmp10 = tmp9 * tmp8
    tmp11 = in_ptr1[...]
    tmp12 = tmp10 * tmp11
    tmp13 = in_ptr2[...]
    tmp14 = tmp12 + tmp13
    out_ptr0[...] = tmp14
