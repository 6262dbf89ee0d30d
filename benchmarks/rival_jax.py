"""JAX's side of the benchmark, compiled (jit): bench_train's workloads, from the same formulas and shapes.

What a call works on comes to it as arguments, the gradient of the output too, and it returns every gradient, so that the
compiler can leave nothing out. JAX takes all cores that it may run on: for one thread, pin the process to a core.
"""

import math

import jax
import jax.numpy as jnp

import rival

KEYS = iter(jax.random.split(jax.random.key(0), 1000))


def normal(*shape):
    return jax.random.normal(next(KEYS), shape)


def training(step, *state_and_data, keeps):
    """Calls step, whose first `keeps` arguments are what it returns behind the loss: each call goes on from the last."""
    step = jax.jit(step, donate_argnums=range(keeps))
    state, data = state_and_data[:keeps], state_and_data[keeps:]

    def call():
        nonlocal state
        loss, *state = step(*state, *data)
        return loss

    return call


def compiled(f, *operands):
    f = jax.jit(f)
    return lambda: f(*operands)


def forward_and_backward(f, *shapes):
    """f of operands of these shapes, the first one being y's too, then backward from a gradient of ones."""
    operands = [normal(*shape) for shape in shapes]

    def both(dy, *operands):
        y, backward = jax.vjp(f, *operands)
        return y, backward(dy)

    return compiled(both, jnp.ones(shapes[0]), *operands)


def leave_one_out(x):
    """(n) -> (n,n-1): row i is x without x[i]."""
    n = len(x)
    return jnp.tile(x, (n, 1))[~jnp.eye(n, dtype=bool)].reshape(n, n - 1)


def nw_step():
    x = jnp.sort(jax.random.uniform(next(KEYS), (50,)) * 5)
    y = 2 * jnp.sin(x) + x**0.8 + normal(50) * 0.5

    def loss(w, x, y, keys, values):
        queries = jnp.repeat(x, 49).reshape(50, 49)
        attention = jax.nn.softmax(-(((queries - keys) * w) ** 2) / 2, axis=1)
        prediction = (attention[:, None, :] @ values[:, :, None]).reshape(-1)
        return jnp.sum((prediction - y) ** 2)

    def step(w, *data):
        value, dw = jax.value_and_grad(loss)(w, *data)
        return value, w - 0.5 * dw

    w = jax.random.uniform(next(KEYS), (49,))
    return training(step, w, x, y, leave_one_out(x), leave_one_out(y), keeps=1)


def scalar_ops(ops):
    def f(z):
        for _ in range(ops // 2):
            z = z * 0.999 + 0.001
        return z

    return compiled(jax.value_and_grad(f), 1.0)


def attend(x, qkv, heads, mask):
    batch, length, width = x.shape
    q, k, v = jnp.split((x @ qkv.T).reshape(batch, length, 3 * heads, -1), 3, axis=2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads)
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)


def attention(batch, length, width, heads):
    lengths = jnp.array([(2 * i + 1) * length // (2 * batch) for i in range(batch)])

    def f(qkv, out, x, lengths):
        mask = (jnp.arange(length) < lengths[:, None])[:, None, None, :]
        return attend(x, qkv, heads, mask) @ out.T

    def both(dy, qkv, out, x, lengths):
        y, backward = jax.vjp(lambda *operands: f(*operands, lengths), qkv, out, x)
        return jnp.sum(y), backward(dy)

    weights = normal(3 * width, width) / math.sqrt(width), normal(width, width) / math.sqrt(width)
    return compiled(both, jnp.ones((batch, length, width)), *weights, normal(batch, length, width), lengths)


def layer_norm(x, weight, bias=0.0):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * weight + bias


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def language_model(length, layers, heads, width):
    """Parameters, and the function from them and tokens to logits."""
    last = 0.02 / math.sqrt(2 * layers)  # of what ends a part
    parameters = {
        "tokens": normal(65, width) * 0.02,
        "positions": normal(length, width) * 0.02,
        "norm": jnp.ones(width),
        "layers": [
            {
                "norm1": jnp.ones(width),
                "norm2": jnp.ones(width),
                "qkv": normal(3 * width, width) * 0.02,
                "out": normal(width, width) * last,
                "linear1": normal(4 * width, width) * 0.02,
                "linear2": normal(width, 4 * width) * last,
            }
            for _ in range(layers)
        ],
    }

    def logits(p, tokens):
        mask = jnp.tri(tokens.shape[1], dtype=bool)
        x = p["tokens"][tokens] + p["positions"][: tokens.shape[1]]
        for layer in p["layers"]:
            x = x + attend(layer_norm(x, layer["norm1"]), layer["qkv"], heads, mask) @ layer["out"].T
            x = x + gelu(layer_norm(x, layer["norm2"]) @ layer["linear1"].T) @ layer["linear2"].T
        return layer_norm(x, p["norm"]) @ p["tokens"].T  # the head is the embedding

    return parameters, logits


def random_tokens(*shape):
    return jax.random.randint(next(KEYS), shape, 0, 65)


def language_model_step(batch, length, layers, heads, width):
    parameters, logits = language_model(length, layers, heads, width)

    def loss(p, seen, following):
        log_probabilities = jax.nn.log_softmax(logits(p, seen))
        return -jnp.mean(jnp.take_along_axis(log_probabilities, following[..., None], axis=-1))

    def step(p, m, v, t, seen, following):
        value, gradient = jax.value_and_grad(loss)(p, seen, following)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        clip = jnp.minimum(1.0, 1.0 / norm)
        t += 1

        def adamw(p, g, m, v):
            g = g * clip
            m = 0.9 * m + 0.1 * g
            v = 0.99 * v + 0.01 * g**2
            p = p * (1 - 3e-4 * (0.1 if p.ndim > 1 else 0.0))
            return p - 3e-4 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-8), m, v

        updated = jax.tree.map(adamw, p, gradient, m, v)
        is_triple = lambda node: isinstance(node, tuple)
        return value, *(jax.tree.map(lambda triple: triple[i], updated, is_leaf=is_triple) for i in range(3)), t

    m, v = (jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))
    seen, following = random_tokens(batch, length), random_tokens(batch, length)
    return training(step, parameters, m, v, jnp.float32(0), seen, following, keeps=4)


def language_model_forward(batch, length, layers, heads, width):
    parameters, logits = language_model(length, layers, heads, width)
    return compiled(logits, parameters, random_tokens(batch, length))


WORKLOADS = {
    "nw_step": nw_step,
    **rival.sized_rows(scalar_ops, attention, language_model_step, language_model_forward),
    "softmax_4096x512": lambda: forward_and_backward(jax.nn.softmax, (4096, 512)),
    "layernorm_4096x512": lambda: forward_and_backward(layer_norm, (4096, 512), (512,), (512,)),
    "gelu_1M": lambda: forward_and_backward(gelu, (1 << 20,)),
    "add_bcast_4096x512": lambda: forward_and_backward(jnp.add, (4096, 512), (512,)),
    "linear_2048x512x512": lambda: forward_and_backward(lambda x, w: x @ w.T, (2048, 512), (512, 512)),
    "bmm_64x64x64x64": lambda: forward_and_backward(jnp.matmul, (64, 64, 64), (64, 64, 64)),
    "gemm_1024": lambda: compiled(jnp.matmul, normal(1024, 1024), normal(1024, 1024)),
}

if __name__ == "__main__":
    options = rival.parse(WORKLOADS, "JAX (jit)", jax.__version__)
    rival.time_all(WORKLOADS, options, wait=jax.block_until_ready)
