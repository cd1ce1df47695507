"""The paper's solvers: Algorithms 1 and 2, proximal gradient with a fixed step.

For class matrices A and B and z = [w; b], with a column of ones for the bias b,

    h(z) = r(z) + delta * penalty(z),     r(z) = ||A w + b||^2 / ||B w + b||^2

is lowered by y = z - step * grad r(z), followed by a proximal step (U. O. Ugwu and M. Kirby,
arXiv:2410.03978, 2024). As published: r does not change when z is scaled while the penalty shrinks
with z, so h has no minimiser, and where it stops depends on the start, the step and the cap.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import check_random_state

from .._typing import Float64Array as Vector
from .._validate import check_choice, check_integer, check_real

Conventions = Literal["paper", "code"]
Prox = Literal["weighted", "exact"]
Operator = Any  # a class matrix: a shape, and products with it and with its transpose
Products = tuple[Vector, Vector]  # M z and M'M z of a class matrix M
_TOGETHER = 4  # from so many planes on, one product of matrices is faster than one for each
_SAME, _CYCLE = 1e-10, 20  # relative error of equal objectives; so many make a cycle


@dataclass(frozen=True, eq=False)
class PGDHistory:
    """The course of the iteration.

    Attributes
    ----------
    objective, fidelity, penalty : ndarray of shape (n_iter + 1,)
        h, r and the weighted penalty at the start and after each iteration.
    relative_error : ndarray of shape (n_iter,)
        ``|h_k - h_{k-1}| / |h_{k-1}|``, the quantity the stopping rule looks at.
    """

    objective: Vector
    fidelity: Vector
    penalty: Vector
    relative_error: Vector

    @property
    def cycle(self) -> int | None:
        """The iteration from which h takes two values in turn to the end, or None."""
        h = self.objective
        other = np.flatnonzero(np.abs(h[2:] - h[:-2]) > _SAME * np.abs(h[2:]))
        since = int(other[-1]) + 1 if other.size else 0
        if h.size - since < _CYCLE or abs(h[-1] - h[-2]) <= math.sqrt(_SAME) * abs(h[-1]):
            return None
        return since


@dataclass(frozen=True, eq=False)
class PGDResult:
    """The result of Algorithm 1 or 2.

    Attributes
    ----------
    w, b : ndarray of shape (n_features,) and float
        Normal and bias; the bias is 0 without a column of ones.
    n_iter, converged : int and bool
        Iterations, and whether the stopping rule fired before the cap. It says that h changed
        little in one step, not that the point is stationary.
    history : PGDHistory
    """

    w: Vector
    b: float
    n_iter: int
    converged: bool
    history: PGDHistory


def l1_pgd_gsvp(
    A: Operator,
    B: Operator,
    delta: float,
    *,
    step_size: float = 1e-3,
    backtracking: bool = False,
    max_iter: int = 10_000,
    tol: float = 1e-4,
    z0: Vector | None = None,
    bias: bool = True,
    random_state: int | np.random.RandomState | None = 42,
) -> PGDResult:
    r"""Algorithm 1: proximal gradient for the l1-penalised quotient of two matrices.

    .. math:: \min_z \frac{\|Az\|_2^2}{\|Bz\|_2^2} + \delta \|z\|_1

    Parameters
    ----------
    A, B : ndarray of shape (n_a, n_features), (n_b, n_features), or linear operators
        Anything with ``shape``, ``A @ v`` and ``A.T @ v``.
    delta : float
        The penalty, the bias included.
    step_size, backtracking : float, default=1e-3, and bool, default=False
        The step; with backtracking the first, halved whenever the quotient rises above its
        quadratic model.
    max_iter, tol : int, default=10000, and float, default=1e-4
        Stop at the cap, or when the relative change of the objective is below tol.
    z0, random_state : ndarray of shape (n_features + bias,), optional, and seed, default=42
        Start. By default uniform on [0, 1), divided by its norm.
    bias : bool, default=True
        Act as if A and B had a column of ones appended.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.solvers import l1_pgd_gsvp
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    >>> B[:, 2] += 5
    >>> result = l1_pgd_gsvp(A, B, delta=0.1, step_size=0.01, max_iter=500)
    >>> int(np.argmax(np.abs(result.w))), result.n_iter
    (2, 500)
    """
    return lq_pgd_gsvp(
        *(A, B, delta), q=1.0, prox="exact", step_size=step_size, backtracking=backtracking,
        max_iter=max_iter, tol=tol, z0=z0, bias=bias, random_state=random_state,
    )  # fmt: skip


def lq_pgd_gsvp(
    A: Operator,
    B: Operator,
    delta: float,
    *,
    q: float = 1.0,
    eps: float = 1e-3,
    step_size: float = 1e-3,
    backtracking: bool = False,
    max_iter: int = 10_000,
    tol: float = 1e-4,
    conventions: Conventions = "paper",
    prox: Prox = "weighted",
    z0: Vector | None = None,
    bias: bool = True,
    random_state: int | np.random.RandomState | None = 42,
) -> PGDResult:
    r"""Algorithm 2: proximal gradient for the lq-penalised quotient of two matrices.

    .. math:: \min_z \frac{\|Az\|_2^2}{\|Bz\|_2^2}
              + \delta \sum_f D_f z_f^2, \qquad D_f = (z_f^2 + \epsilon^2)^{(q-2)/2}

    The proximal step divides each coordinate by 1 + step * delta * D_f, so small entries
    become tiny but never zero.

    Parameters
    ----------
    A, B, delta, step_size, backtracking, max_iter, tol, z0, bias, random_state
        As in `l1_pgd_gsvp`.
    q, eps : float, default=1.0 and 1e-3
        Exponent, in (0, 1], and smoothing of the penalty at zero.
    conventions : {"paper", "code"}, default="paper"
        Where the weights D are taken: "paper" as printed, at z; "code" as the authors ran
        it, at y after the gradient step, with the objective's weights one iterate behind.
    prox : {"weighted", "exact"}, default="weighted"
        "weighted" is the paper's step; "exact" the proximal operator of the lq norm itself
        (`lq_prox`), to which eps and conventions mean nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.solvers import lq_pgd_gsvp
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    >>> B[:, 2] += 5
    >>> result = lq_pgd_gsvp(A, B, delta=0.01, q=0.5, step_size=0.01)
    >>> int(np.argmax(np.abs(result.w))), bool(np.all(result.w != 0))
    (2, True)
    """
    for name, matrix in (("A", A), ("B", B)):
        if len(matrix.shape) != 2 or 0 in matrix.shape:
            raise ValueError(f"{name} must have two dimensions, none of them 0.")
        if isinstance(matrix, np.ndarray) and not np.isfinite(matrix).all():
            raise ValueError(f"{name} holds NaN or infinity. Impute or drop these values first.")
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A and B must have the same features, got {A.shape[1]} and {B.shape[1]}.")
    size = A.shape[1] + bias
    start = random_start(size, random_state) if z0 is None else np.array(z0, dtype=np.float64)
    if start.shape != (size,) or not np.isfinite(start).all():
        raise ValueError(f"z0 must hold {size} finite numbers, got shape {start.shape}.")
    penalty = (delta, q, prox, eps, conventions)
    plane = PGDPlane(0, start, *penalty, step_size, max_iter, tol, backtracking)
    return pgd_planes(A, B, [plane], bias=bias)[0]


def random_start(size: int, random_state: int | np.random.RandomState | None) -> Vector:
    """A start as the authors drew it: uniform on [0, 1), divided by its norm."""
    z = check_random_state(random_state).uniform(size=size)
    return z / np.linalg.norm(z)


def lq_prox(y: Vector, weight: float, q: float) -> Vector:
    r"""Minimise :math:`\frac12 (x - y)^2 + w |x|^q` over x, entry by entry, for 0 < q <= 1.

    With q < 1 the minimiser jumps: it is 0 up to a threshold, and beyond it the larger root
    of :math:`x + w q x^{q-1} = |y|`. Newton's iteration from :math:`|y|` falls to it without
    passing it, because the left side is convex.

    Parameters
    ----------
    y : ndarray
    weight, q : float
        The weight w of the penalty, at least 0, and the exponent, in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.solvers import lq_prox
    >>> lq_prox(np.array([-3.0, 1.0, 1.6]), 1.0, 0.5)
    array([-2.69545315,  0.        ,  1.1295448 ])
    """
    size = np.abs(y)
    if q == 1.0 or weight == 0.0:
        return np.copysign(np.maximum(size - weight, 0.0), y)
    jump = (2.0 * weight * (1.0 - q)) ** (1.0 / (2.0 - q))
    beyond = np.flatnonzero(size > jump + weight * q * jump ** (q - 1.0))
    x = target = size[beyond]
    for _ in range(30):
        pull = weight * q * x ** (q - 1.0)
        before, x = x, x - (x + pull - target) / (1.0 - (1.0 - q) * pull / x)
        if np.array_equal(before, x):
            break
    out = np.zeros_like(size)
    out[beyond] = np.copysign(x, y[beyond])
    return out


@dataclass(frozen=True, eq=False)
class PGDPlane:
    """A plane to be found: the class it shall be near (0 is A, 1 is B), and how.

    The exact step has the paper's scale, at q = 1 the threshold step_size * delta / 2 (equations
    11, 12), so it aims at half the penalty that the stopping rule watches; the weighted step is of
    equations 14, 15 and 17.
    """

    near: int
    start: Vector
    delta: float
    q: float = 1.0
    prox: Prox = "exact"
    eps: float = 1e-3
    conventions: Conventions = "paper"
    step_size: float = 1e-3
    max_iter: int = 10_000
    tol: float = 1e-4
    backtracking: bool = False

    def __post_init__(self) -> None:
        check_real("delta", self.delta, least=0)
        check_real("q", self.q, above=0, most=1)
        check_choice("prox", self.prox, get_args(Prox))
        check_real("eps", self.eps, above=0)
        check_choice("conventions", self.conventions, get_args(Conventions))
        check_real("step_size", self.step_size, above=0)
        check_integer("max_iter", self.max_iter, least=1)
        check_real("tol", self.tol, least=0)

    def _weights(self, z: Vector) -> Vector:
        return (z * z + self.eps**2) ** (0.5 * (self.q - 2.0))

    def penalty(self, z: Vector, previous: Vector) -> float:
        """The penalty at z, the iterate after `previous`."""
        if self.prox == "exact":
            return self.delta * float(np.add.reduce(np.abs(z) ** self.q))
        at = z if self.conventions == "paper" else previous
        return self.delta * float(self._weights(at) @ (z * z))

    def step(self, y: Vector, z: Vector, size: float) -> Vector:
        """The iterate after z, from y, where the gradient step of this size ended."""
        if self.prox == "exact":
            return lq_prox(y, 0.5 * size * self.delta, self.q)
        at = z if self.conventions == "paper" else y
        return y / (1.0 + size * self.delta * self._weights(at))


def pgd_planes(
    A: Operator, B: Operator, planes: Sequence[PGDPlane], *, bias: bool = True
) -> list[PGDResult]:
    """Find several planes of the same two classes, side by side: they share each pass over both."""
    walks = [_iterate(plane, bias) for plane in planes]
    iterates = {walk: next(walk) for walk in walks}
    results = {}
    while iterates:
        products = [_products(M, list(iterates.values()), bias) for M in (A, B)]
        for walk, answer in zip(list(iterates), zip(*products)):
            try:
                iterates[walk] = walk.send(answer)
            except StopIteration as end:
                results[walk] = end.value
                del iterates[walk]
    return [results[walk] for walk in walks]


def _iterate(
    plane: PGDPlane, bias: bool
) -> Generator[Vector, tuple[Products, Products], PGDResult]:
    """Find one plane: yield each iterate z, and take the products of A and of B with it."""
    near, far = plane.near, 1 - plane.near
    z, step, converged = plane.start, plane.step_size, False
    products = yield z
    value, denominator = _quotient(products[near][0], products[far][0], 0)
    # Python numbers and lists: with few features, array overhead is most of an iteration.
    fidelities, penalties = [value], [plane.penalty(z, z)]
    errors: list[float] = []
    while not converged and len(errors) < plane.max_iter:
        # half the gradient, times the denominator
        direction = products[near][1] - value * products[far][1]
        previous, accepted = z, False
        while not accepted:
            y = previous - direction * (2.0 * step / denominator)
            z = plane.step(y, previous, step)
            products = yield z
            quotient = _quotient(products[near][0], products[far][0], len(fidelities))
            accepted = not plane.backtracking
            if not accepted:
                # The quotient's quadratic model at the new iterate, and what rounding adds to it.
                move = z - previous
                slope = 2.0 / denominator * float(direction @ move)
                model = value * (1.0 + 1e-14) + slope + 0.5 / step * float(move @ move)
                accepted = quotient[0] <= model
                step = step if accepted else step / 2.0
        before = value + penalties[-1]
        value, denominator = quotient
        fidelities.append(value)
        penalties.append(plane.penalty(z, previous))
        # A plane that passes through all of class A, unpenalised, has objective 0.
        errors.append(abs(value + penalties[-1] - before) / before if before else 0.0)
        converged = errors[-1] < plane.tol
    objective = np.add(fidelities, penalties)
    history = PGDHistory(objective, *map(np.array, (fidelities, penalties, errors)))
    w, b = (z[:-1], float(z[-1])) if bias else (z, 0.0)
    return PGDResult(w, b, len(errors), converged, history)


def _quotient(near: Vector, far: Vector, iteration: int) -> tuple[float, float]:
    """Return the quotient and its denominator."""
    numerator, denominator = float(near @ near), float(far @ far)
    if denominator == 0.0 or not math.isfinite(numerator / denominator):
        vanished = "the iterate vanished on the second class"
        what = "squares of the values overflow" if denominator else vanished
        raise ValueError(
            f"The quotient has no value at iteration {iteration}: {what}. Rescale the data, or "
            "take a smaller delta or step_size."
        )
    return numerator / denominator, denominator


def _products(M: Operator, iterates: list[Vector], bias: bool) -> Iterator[Products]:
    """``M z`` and ``M'M z`` for every z, as if M had the column of ones."""
    size = M.shape[1]
    squares = np.empty((len(iterates), size + bias))
    if len(iterates) < _TOGETHER or not isinstance(M, np.ndarray):
        images: Any = [M @ z[:-1] + z[-1] if bias else M @ z for z in iterates]
        for square, image in zip(squares, images):
            square[:size] = M.T @ image
    else:
        Z = np.array(iterates)
        images = Z[:, :-1] @ M.T + Z[:, -1:] if bias else Z @ M.T
        np.matmul(images, M, out=squares[:, :size])
    if bias:
        squares[:, -1] = [np.add.reduce(image) for image in images]
    return zip(images, squares)
