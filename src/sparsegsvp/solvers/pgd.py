"""The paper's solvers: Algorithms 1 and 2, proximal gradient with a fixed step.

For class matrices A and B and z = [w; b], with a column of ones for the bias b,

    h(z) = r(z) + delta * penalty(z),     r(z) = ||A w + b||^2 / ||B w + b||^2

is lowered by y = z - step * grad r(z), followed by a proximal step. Kept as published: r does not
change when z is scaled while the penalty shrinks with z, so h has no minimiser, and where the
iteration stops depends on the start, the step and the cap.

U. O. Ugwu and M. Kirby, Optimizing Sparse Generalized Singular Vectors for Feature Selection in
Proximal Support Vector Machines with Application to Breast and Ovarian Cancer Detection,
arXiv:2410.03978 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from sklearn.utils import check_random_state

from .._typing import Float64Array as Vector
from .._validate import check_choice, check_integer, check_real

Conventions = Literal["paper", "code"]
Prox = Literal["weighted", "exact"]
Pair = tuple[Vector, Vector]  # of A and of B
# A class matrix as the iteration needs it: a shape, and products with it and with its transpose.
Operator = Any
# From so many planes on, one product of matrices is faster than a product for each.
_TOGETHER = 4
# Enough steps of Newton's iteration for the last digit; five to eight are taken.
_NEWTON = 30
# Values of the objective are the same to this relative error; so many make a cycle.
_SAME, _CYCLE = 1e-10, 20


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
        """The iteration from which h takes two values in turn to the end, or None.

        The step is then too long for the curvature there, and what is selected depends on
        whether the cap is an even or an odd number.
        """
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
    n_iter : int
        Iterations.
    converged : bool
        Whether the stopping rule fired before the cap. It says that h changed little in one
        step, not that the point is stationary.
    history : PGDHistory
        The course of the iteration.
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
    step_size : float, default=1e-3
    backtracking : bool, default=False
        Halve the step whenever the quotient rises above its quadratic model; ``step_size`` is
        then the first one tried.
    max_iter : int, default=10000
    tol : float, default=1e-4
        Stop when the relative change of the objective is below it.
    z0 : ndarray of shape (n_features + bias,), optional
        Start. By default uniform on [0, 1), divided by its norm.
    bias : bool, default=True
        Act as if A and B had a column of ones appended.
    random_state : int, RandomState or None, default=42
        Seed of the default start.

    Returns
    -------
    PGDResult

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
    penalty = make_pgd_penalty(delta, None, 1.0, "paper", "weighted")
    start = _start(A, B, z0, bias, random_state)
    plane = PGDPlane(0, penalty, start, step_size, max_iter, tol, backtracking)
    return pgd_planes(A, B, [plane], bias=bias)[0]


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

    .. math::

        \min_z \frac{\|Az\|_2^2}{\|Bz\|_2^2}
        + \delta \sum_f (z_f^2 + \epsilon^2)^{(q-2)/2} z_f^2

    The proximal step divides each coordinate by 1 + step * delta * D_f, so small entries
    become tiny but never zero.

    Parameters
    ----------
    A, B, delta, step_size, backtracking, max_iter, tol, z0, bias, random_state
        As in `l1_pgd_gsvp`.
    q : float in (0, 1], default=1.0
    eps : float, default=1e-3
        Smoothing of the penalty at zero.
    conventions : {"paper", "code"}, default="paper"
        Where the weights D are taken: "paper" as printed, at z; "code" as the authors ran
        it, at y after the gradient step, with the objective's weights one iterate behind.
    prox : {"weighted", "exact"}, default="weighted"
        "weighted" is the paper's step; "exact" the proximal operator of the lq norm itself
        (`lq_prox`), to which eps and conventions mean nothing.

    Returns
    -------
    PGDResult

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
    penalty = make_pgd_penalty(delta, q, eps, conventions, prox)
    start = _start(A, B, z0, bias, random_state)
    plane = PGDPlane(0, penalty, start, step_size, max_iter, tol, backtracking)
    return pgd_planes(A, B, [plane], bias=bias)[0]


def lq_prox(y: Vector, weight: float, q: float) -> Vector:
    r"""Minimise :math:`\frac12 (x - y)^2 + w |x|^q` over x, entry by entry, for 0 < q <= 1.

    With q < 1 the minimiser jumps: it is 0 up to a threshold, and beyond it the larger root
    of :math:`x + w q x^{q-1} = |y|`. Newton's iteration from :math:`|y|` falls to it without
    passing it, because the left side is convex.

    Parameters
    ----------
    y : ndarray
        Where the gradient step ended.
    weight, q : float
        The weight w of the penalty, at least 0, and the exponent, in (0, 1].

    Returns
    -------
    ndarray
        The minimiser, of the shape of y.

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
    target = size[beyond]
    x = target.copy()
    for _ in range(_NEWTON):
        pull = weight * q * x ** (q - 1.0)
        before, x = x, x - (x + pull - target) / (1.0 - (1.0 - q) * pull / x)
        if np.array_equal(before, x):
            break
    out = np.zeros_like(size)
    out[beyond] = np.copysign(x, y[beyond])
    return out


# -------------------------------------------------------------------------- the penalties


class PGDPenalty(Protocol):
    """A penalty: its value at z, the iterate after ``previous``, and the step from y after z."""

    def value(self, z: Vector, previous: Vector) -> float: ...

    def prox(self, y: Vector, z: Vector, step: float) -> Vector: ...


@dataclass(frozen=True)
class SoftThreshold:
    """delta * ||z||_1 with the paper's threshold, step * delta / 2 (equation 12).

    So the iteration aims at r + (delta / 2) ||z||_1 while the stopping rule watches delta ||z||_1.
    """

    delta: float

    def value(self, z: Vector, previous: Vector) -> float:
        return self.delta * float(np.add.reduce(np.abs(z)))

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        return np.copysign(np.maximum(np.abs(y) - 0.5 * step * self.delta, 0.0), y)


@dataclass(frozen=True)
class WeightedRidge:
    """delta * z' D z, D = diag((z^2 + eps^2)^((q - 2) / 2)) (equations 14, 15 and 17).

    "paper" takes D at z for the step and at the point itself for the objective; "code" takes
    it at y, after the gradient step, and at the previous iterate.
    """

    delta: float
    q: float
    eps: float
    conventions: Conventions

    def _weights(self, z: Vector) -> Vector:
        return (z * z + self.eps**2) ** (0.5 * (self.q - 2.0))

    def value(self, z: Vector, previous: Vector) -> float:
        at = z if self.conventions == "paper" else previous
        return self.delta * float(self._weights(at) @ (z * z))

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        at = z if self.conventions == "paper" else y
        return y / (1.0 + step * self.delta * self._weights(at))


@dataclass(frozen=True)
class ExactLq:
    """delta * sum |z|^q with its own proximal operator, in the paper's scale (equation 11).

    At q = 1 it is `SoftThreshold`. Small entries become exactly zero.
    """

    delta: float
    q: float

    def value(self, z: Vector, previous: Vector) -> float:
        return self.delta * float(np.add.reduce(np.abs(z) ** self.q))

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        return lq_prox(y, 0.5 * step * self.delta, self.q)


def make_pgd_penalty(
    delta: float, q: float | None, eps: float, conventions: Conventions, prox: Prox
) -> PGDPenalty:
    """Return the penalty of Algorithm 1 (without q), or that of Algorithm 2 or its variant."""
    check_choice("conventions", conventions, get_args(Conventions))
    check_choice("prox", prox, get_args(Prox))
    check_real("delta", delta, least=0)
    if q is None:
        return SoftThreshold(delta)
    check_real("q", q, above=0, most=1)
    check_real("eps", eps, above=0)
    return ExactLq(delta, q) if prox == "exact" else WeightedRidge(delta, q, eps, conventions)


# ------------------------------------------------------------------------------- the loop


@dataclass(frozen=True, eq=False)
class PGDPlane:
    """A plane to be found: the class it shall be near (0 is A, 1 is B), and how."""

    near: int
    penalty: PGDPenalty
    start: Vector
    step_size: float
    max_iter: int
    tol: float
    backtracking: bool = False

    def __post_init__(self) -> None:
        check_real("step_size", self.step_size, above=0)
        check_integer("max_iter", self.max_iter, least=1)
        check_real("tol", self.tol, least=0)


def pgd_planes(
    A: Operator, B: Operator, planes: Sequence[PGDPlane], *, bias: bool = True
) -> list[PGDResult]:
    """Find several planes of the same two classes, side by side.

    The time of an iteration is that of reading A and B, twice, which planes side by side share:
    from four on, products of matrices take the place of products with vectors. With 176 x 15154
    numbers each of forty planes costs a fifth of one alone. Every plane has its own iteration,
    the same as alone up to the rounding of these products.
    """
    walks = [_Walk(plane) for plane in planes]
    for walk, products in zip(walks, _products(A, B, walks, bias)):
        walk.begin(products)
    active = walks
    while active:
        gradients = (
            _backward(M, [walk.products[k] for walk in active], bias) for k, M in enumerate((A, B))
        )
        for walk, pair in zip(active, zip(*gradients)):
            walk.move(pair)
        trying = active
        while trying:  # again where a step was too long, which only backtracking minds
            found = zip(trying, _products(A, B, trying, bias))
            trying = [walk for walk, products in found if not walk.accept(products)]
        active = [walk for walk in active if not walk.ended]
    return [walk.result(bias) for walk in walks]


def _products(A: Operator, B: Operator, walks: list[_Walk], bias: bool) -> Iterator[Pair]:
    """A z and B z of every iterate."""
    vectors = [walk.z for walk in walks]
    return zip(_forward(A, vectors, bias), _forward(B, vectors, bias))


class _Walk:
    """The iteration of one plane, which is given the products it needs.

    A z and B z, which the objective needs, are those the next gradient starts from, so an
    iteration takes one product with each of A, A', B and B'.
    """

    def __init__(self, plane: PGDPlane) -> None:
        self.plane, self.z, self.step = plane, plane.start, plane.step_size
        # Python numbers and lists: with few features, array overhead is most of an iteration.
        self.fidelities: list[float] = []
        self.penalties: list[float] = []
        self.errors: list[float] = []
        self.converged = False

    @property
    def ended(self) -> bool:
        return self.converged or len(self.errors) >= self.plane.max_iter

    def begin(self, products: Pair) -> None:
        """Take A z and B z of the start."""
        self._record(products, self._quotient(products), self.z)

    def move(self, pair: Pair) -> None:
        """Take A'A z and B'B z, and step to the next iterate."""
        near = self.plane.near
        self.direction = pair[near]  # half the gradient, times the denominator
        self.direction -= self.fidelities[-1] * pair[1 - near]
        self.previous = self.z
        self._step()

    def _step(self) -> None:
        y = self.previous - self.direction * (2.0 * self.step / self.denominator)
        self.z = self.plane.penalty.prox(y, self.previous, self.step)

    def accept(self, products: Pair) -> bool:
        """Take A z and B z of the new iterate; see whether the objective has settled.

        With backtracking, a step after which the quotient lies above its quadratic model is
        taken back for half of it, and False is returned.
        """
        quotient = self._quotient(products)
        if self.plane.backtracking and quotient[0] > self._model():
            self.step /= 2.0
            self._step()
            return False
        before = self.objective
        self._record(products, quotient, self.previous)
        # A plane that passes through all of class A, unpenalised, has objective 0.
        self.errors.append(abs(self.objective - before) / before if before else 0.0)
        self.converged = self.errors[-1] < self.plane.tol
        return True

    def _model(self) -> float:
        """The quadratic model of the quotient at the new iterate, and what rounding adds."""
        move, value = self.z - self.previous, self.fidelities[-1]
        slope = 2.0 / self.denominator * float(self.direction @ move)
        return value * (1.0 + 1e-14) + slope + 0.5 / self.step * float(move @ move)

    def _quotient(self, products: Pair) -> tuple[float, float]:
        near, far = products[self.plane.near], products[1 - self.plane.near]
        numerator, denominator = float(near @ near), float(far @ far)
        at = f"at iteration {len(self.fidelities)}"
        if denominator == 0.0:
            raise ValueError(
                f"The iterate vanished on the second class {at}, where the quotient has no "
                "value. Take a smaller delta or a smaller step_size."
            )
        if not math.isfinite(numerator / denominator):
            raise ValueError(
                f"The quotient is not finite {at}: the squares of the values overflow. Rescale "
                "the data or take a smaller step_size."
            )
        return numerator / denominator, denominator

    def _record(self, products: Pair, quotient: tuple[float, float], previous: Vector) -> None:
        self.products = products
        fidelity, self.denominator = quotient
        self.fidelities.append(fidelity)
        self.penalties.append(self.plane.penalty.value(self.z, previous))
        self.objective = fidelity + self.penalties[-1]

    def result(self, bias: bool) -> PGDResult:
        history = PGDHistory(
            objective=np.add(self.fidelities, self.penalties),
            fidelity=np.array(self.fidelities),
            penalty=np.array(self.penalties),
            relative_error=np.array(self.errors),
        )
        w, b = (self.z[:-1], float(self.z[-1])) if bias else (self.z, 0.0)
        return PGDResult(w, b, len(self.errors), self.converged, history)


def _forward(A: Operator, vectors: list[Vector], bias: bool) -> Any:
    """[A 1] z for every z, without the column of ones."""
    if len(vectors) < _TOGETHER or not isinstance(A, np.ndarray):
        return [A @ z[:-1] + z[-1] if bias else A @ z for z in vectors]
    Z = np.array(vectors)
    return Z[:, :-1] @ A.T + Z[:, -1:] if bias else Z @ A.T


def _backward(A: Operator, vectors: list[Vector], bias: bool) -> Any:
    """[A 1]' v for every v, without the column of ones."""
    size = A.shape[1]
    products = np.empty((len(vectors), size + bias))
    if len(vectors) < _TOGETHER or not isinstance(A, np.ndarray):
        for product, v in zip(products, vectors):
            product[:size] = A.T @ v
    else:
        np.matmul(np.array(vectors), A, out=products[:, :size])
    if bias:
        products[:, -1] = [np.add.reduce(v) for v in vectors]
    return products


def _start(
    A: Operator,
    B: Operator,
    z0: Vector | None,
    bias: bool,
    random_state: int | np.random.RandomState | None,
) -> Vector:
    for name, matrix in (("A", A), ("B", B)):
        if len(matrix.shape) != 2 or 0 in matrix.shape:
            raise ValueError(f"{name} must have two dimensions, none of them 0.")
        if isinstance(matrix, np.ndarray) and not np.isfinite(matrix).all():
            raise ValueError(f"{name} holds NaN or infinity. Impute or drop these values first.")
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"A and B must have the same features, got {A.shape[1]} and {B.shape[1]} columns."
        )
    size = A.shape[1] + bias
    if z0 is None:
        z = check_random_state(random_state).uniform(size=size)
        return z / np.linalg.norm(z)
    z = np.array(z0, dtype=np.float64)
    if z.shape != (size,) or not np.isfinite(z).all():
        raise ValueError(f"z0 must hold {size} finite numbers, got shape {z.shape}.")
    return z
