"""From equations to physically consistent parameters with stated confidence."""
