"""Logistic regression of secrets on covariates, through the mechanisms of their reports."""
