"""The methods that the sparse generalised singular value problem grew out of.

Each is a scikit-learn estimator in a file of its own; what they share is the binary problem
(``_problem``, ``_row_space``), panels (``_panels``) and planes (``_planes``).
"""

from ._gene_shaving import GeneShaving
from ._gepsvm import GEPSVM
from ._gsvd_selector import GSVDSelector
from ._l1_regec import L1ReGEC
from ._npsvm import NPSVM
from ._rayleigh_flow import TruncatedRayleighFlow
from ._regec import ReGEC
from ._sparse_psvm import SparsePSVM

__all__ = [
    "GEPSVM",
    "NPSVM",
    "GSVDSelector",
    "GeneShaving",
    "L1ReGEC",
    "ReGEC",
    "SparsePSVM",
    "TruncatedRayleighFlow",
]
