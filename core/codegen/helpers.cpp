#include "core/codegen/helpers.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pallascope::codegen {
namespace {

struct Helper {
  std::string_view name, text;
};

// A helper stands after those that it calls.
constexpr std::array kHelpers = {
    Helper{"_maximum", R"PY(def _maximum(a, b):
    """The larger, NaN if either is; of equals (0 and -0) the left one, as PyTorch takes it."""
    return jnp.where((a >= b) | (a != a), a, b))PY"},
    Helper{"_minimum", R"PY(def _minimum(a, b):
    """The smaller, NaN if either is; of equals (0 and -0) the left one, as PyTorch takes it."""
    return jnp.where((a <= b) | (a != a), a, b))PY"},
    Helper{"_to_integer", R"PY(def _to_integer(x, dtype):
    """A float as an integer, as x86 converts it: what has no place in 32 or 64 bits is the least number."""
    wide = jnp.int64 if dtype == jnp.int64 else jnp.int32
    least = float(jnp.iinfo(wide).min)
    x = jnp.trunc(x.astype(jnp.float64 if x.dtype == jnp.float64 else jnp.float32))
    held = (x >= least) & (x < -least)
    return jnp.where(held, jnp.where(held, x, 0).astype(wide), jnp.iinfo(wide).min).astype(dtype))PY"},
    Helper{"_rounded_prod", R"PY(def _rounded_prod(x, axes, exponent_bits, mantissa_bits):
    """The product of 16-bit floats, rounded after each factor, as PyTorch takes it."""

    def step(a, b):
        return lax.reduce_precision(a * b, exponent_bits, mantissa_bits)

    return jnp.expand_dims(lax.reduce(x.astype(jnp.float32), jnp.float32(1), step, axes), axes).astype(x.dtype))PY"},
    Helper{"_exp2", R"PY(def _exp2(x):
    """2**x with the whole part of the exponent exact."""
    whole = jnp.clip(jnp.round(x), -1080, 1080)
    return jnp.ldexp(jnp.exp2(x - whole), jnp.where(x == x, whole, 0).astype(jnp.int32)))PY"},
    Helper{"_sinh", R"PY(def _sinh(x):
    """exp(x / 2)**2 / 2 far from 0, where the half of exp(x) would not be as exact."""
    half = jnp.exp(0.5 * jnp.abs(x))
    return jnp.where(jnp.abs(x) < 20, jnp.sinh(x), jnp.sign(x) * ((0.5 * half) * half)))PY"},
    Helper{"_cosh", R"PY(def _cosh(x):
    """exp(x / 2)**2 / 2 far from 0, where the half of exp(x) would not be as exact."""
    half = jnp.exp(0.5 * jnp.abs(x))
    return jnp.where(jnp.abs(x) < 20, jnp.cosh(x), (0.5 * half) * half))PY"},
    Helper{"_digamma", R"PY(def _digamma(x):
    """Its pole at 0 has the sign of where it is reached from."""
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), lax.digamma(x)))PY"},
    Helper{"_integer_pow", R"PY(def _integer_pow(x, n):
    """Powers that wrap; a negative exponent gives the integer part: 1, -1 or 0."""
    x, n = jnp.broadcast_arrays(x, n)
    one = jnp.ones_like(x)
    below = jnp.where(x == one, one, jnp.where(x == -one, jnp.where((n & 1) == 1, -one, one), 0 * one))

    def step(_, state):
        result, power, left = state
        return jnp.where((left & 1) == 1, result * power, result), power * power, left >> 1

    result = lax.fori_loop(0, jnp.iinfo(x.dtype).bits - (jnp.iinfo(x.dtype).min < 0), step, (one, x, jnp.maximum(n, 0 * one)))[0]
    return jnp.where(n < 0, below, result))PY"},
    Helper{"_gcd", R"PY(def _gcd(a, b):
    """As PyTorch: of the magnitudes, where the least number is its own."""
    a, b = jnp.broadcast_arrays(jnp.abs(a), jnp.abs(b))

    def step(state):
        a, b = state
        rest = lax.rem(b, jnp.where(a == 0, 1, a))
        return jnp.where(a == 0, a, rest), jnp.where(a == 0, b, a)

    return lax.while_loop(lambda state: jnp.any(state[0] != 0), step, (a, b))[1])PY"},
    Helper{"_horner", R"PY(def _horner(x, coefficients):
    """A polynomial, highest power first."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total)PY"},
    Helper{"_ndtri", R"PY(def _ndtri(p):
    """The inverse of the normal distribution function, by the rational functions of the Cephes library."""
    tail = jnp.where(p > 0.8646647167633873, 1.0 - p, p)
    inside = jnp.where(tail > 0, tail, 0.5)
    w = inside - 0.5
    s = w * w
    middle = w + w * s * (
        _horner(s, (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125))
        / _horner(s, (1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937,
                      200.26021238006066, -82.03722561683334, 15.90562251262117, -1.1833162112133))
    )
    z = jnp.sqrt(-2.0 * jnp.log(inside))
    r = 1.0 / z
    near = _horner(r, (4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803,
                       2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854))
    near /= _horner(r, (1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075,
                        2.504649462083094, -0.14218292285478779, -0.03808064076915783, -0.0009332594808954574))
    far = _horner(r, (3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908,
                      0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09))
    far /= _horner(r, (1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663,
                       0.013420400608854318, 0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09))
    tails = z - jnp.log(z) / z - r * jnp.where(z < 8, near, far)
    found = jnp.where(inside > 0.1353352832366127, -2.5066282746310002 * middle, tails)
    found = jnp.where(p > 0.8646647167633873, found, -found)
    found = jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, found))
    return jnp.where((p < 0) | (p > 1) | (p != p), jnp.nan, found))PY"},
    Helper{"_erfcx", R"PY(def _erfcx(x):
    """exp(x**2) * erfc(x); exp takes x**2 in two parts, and far out stands the asymptotic series."""
    single = x.dtype != jnp.float64
    size = jnp.minimum(jnp.abs(x), 30.0)
    near = jnp.round(size * 16) / 16
    square = jnp.exp(near * near) * jnp.exp((size - near) * (size + near))
    far = jnp.maximum(jnp.abs(x), 4.0)
    t = 0.5 / (far * far)
    series = 1.0 - t * (1.0 - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t)))))
    right = jnp.where(jnp.abs(x) < (8.0 if single else 20.0), square * lax.erfc(size), 0.5641895835477563 * series / far)
    return jnp.where(x != x, x, jnp.where(x < 0, jnp.where(x < -28.0, jnp.inf, 2.0 * square - right), right)))PY"},
    Helper{"_log_ndtr", R"PY(def _log_ndtr(x):
    """log of the normal distribution function, by erfcx in its tail."""
    scaled = x * 0.7071067811865476
    low = jnp.log(0.5 * _erfcx(-jnp.minimum(scaled, 0.0))) - scaled * scaled
    return jnp.where(x < -1, low, jnp.log1p(-0.5 * lax.erfc(scaled))))PY"},
};

const Helper* find(std::string_view name) {
  const auto found = std::find_if(kHelpers.begin(), kHelpers.end(), [&](const Helper& h) { return h.name == name; });
  return found == kHelpers.end() ? nullptr : &*found;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

void find_helpers(std::string_view text, std::set<std::string_view>& found) {
  for (std::size_t k = text.find('_'); k < text.size(); k = text.find('_', k)) {
    std::size_t end = k;
    while (end < text.size() && is_name(text[end])) ++end;
    if (k == 0 || (!is_name(text[k - 1]) && text[k - 1] != '.'))
      if (const Helper* helper = find(text.substr(k, end - k)); helper != nullptr && found.insert(helper->name).second)
        find_helpers(helper->text, found);
    k = end;
  }
}

std::string helpers_text(const std::set<std::string_view>& names) {
  std::string made;
  for (const Helper& helper : kHelpers)
    if (names.contains(helper.name)) made += "\n\n" + std::string(helper.text) + "\n";
  return made;
}

}  // namespace pallascope::codegen
