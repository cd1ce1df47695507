"""The paper's tables and figures, published and obtained side by side."""
