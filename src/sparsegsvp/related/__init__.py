"""The methods that the sparse generalised singular value problem grew out of.

Each is a scikit-learn estimator in a file of its own; what they share is in ``_base``.
"""
