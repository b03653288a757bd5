"""Assessment of estimates: uncertainty, validation, the verdict, and details for reports."""
