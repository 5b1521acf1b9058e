def pallas_fused_softmax_7412fa2f_kernel(in_ptr0, out_ptr0):
    tmp0 = in_ptr0[...]
    tmp1 = jnp.max(tmp0, axis=(1,), keepdims=True)
    tmp2 = tmp0 - tmp1
    tmp3 = tmp1 - tmp1
    tmp4 = tmp0 == tmp1
    tmp5 = jnp.where(tmp4, tmp3, tmp2)
    tmp6 = jnp.exp(tmp5)
    tmp7 = jnp.sum(tmp6, axis=(1,), keepdims=True)
    tmp8 = tmp6 / tmp7
    out_ptr0[...] = tmp8
