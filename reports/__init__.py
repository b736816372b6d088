"""SHAP and HTML: summarize, then render."""
