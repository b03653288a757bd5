"""Identification: from equations of prepared samples to physically consistent parameters with their uncertainty."""
